package search

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/judge/duplicates"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// fingerprinted returns a hit with the fingerprint of a text, as a peer sends it.
func fingerprinted(n int, text string) api.Hit {
	p := duplicates.NewFingerprint(duplicates.Text{Text: text})
	p.Units = p.Units[:min(len(p.Units), fingerprintUnits)]
	return api.Hit{Key: partition.Key(fmt.Sprintf("web:http://h%d/", n)), Score: float64(100 - n), Print: p.Append(nil)}
}

func shape(hits []api.Hit) string {
	var b strings.Builder
	for _, h := range hits {
		fmt.Fprintf(&b, "%s", strings.Trim(strings.TrimPrefix(string(h.Key), "web:http://h"), "/"))
		for _, c := range h.Copies {
			fmt.Fprintf(&b, "+%s(%s)", strings.Trim(strings.TrimPrefix(string(c.Key), "web:http://h"), "/"), c.Reason)
		}
		b.WriteByte(' ')
	}
	return strings.TrimSpace(b.String())
}

func TestFold(t *testing.T) {
	a := "o farol da vila foi pintado de branco na primavera e toda a gente veio ver a festa"
	b := "a biblioteca abriu as portas depois de um ano de obras e já tem leitores novos todos os dias"
	edited := strings.Replace(a, "branco", "verde", 1)
	denied := strings.Replace(a, "foi pintado", "não foi pintado", 1)
	hits := []api.Hit{fingerprinted(0, a), fingerprinted(1, b), fingerprinted(2, a), {Key: "web:http://h3/", Score: 97},
		fingerprinted(4, edited), fingerprinted(5, denied), fingerprinted(6, b)}
	for _, tt := range []struct {
		offset, limit int
		want          string
		next          int
	}{
		{0, 10, "0+2(exact)+4(edit) 1+6(exact) 3 5", 7},
		{0, 2, "0+2(exact)+4(edit) 1+6(exact)", 3}, // copies are listed in a full answer too
		{3, 2, "3 5", 7}, // and are not hits of the next page
		{7, 2, "", 7},
	} {
		got, next := fold(hits, tt.offset, tt.limit)
		if shape(got) != tt.want || next != tt.next {
			t.Errorf("from %d, %d hits: %q, next %d; want %q, %d", tt.offset, tt.limit, shape(got), next, tt.want,
				tt.next)
		}
	}
	broken := fingerprinted(7, a)
	broken.Print = append(broken.Print, 1)
	if got, _ := fold([]api.Hit{fingerprinted(0, a), broken}, 0, 10); shape(got) != "0 7" {
		t.Errorf("a print that is none: %q", shape(got))
	}
}

// Two long texts that begin with the same words are not copies, though only the words of their
// beginning are compared one by one.
func TestFoldLongTexts(t *testing.T) {
	var begin, one, two strings.Builder
	for i := range 2 * fingerprintUnits {
		fmt.Fprintf(&begin, "comum%d ", i)
	}
	for i := range 20 * fingerprintUnits {
		fmt.Fprintf(&one, "esta%d ", i)
		fmt.Fprintf(&two, "aquela%d ", i)
	}
	x, y := begin.String()+one.String(), begin.String()+two.String()
	if got, _ := fold([]api.Hit{fingerprinted(0, x), fingerprinted(1, y), fingerprinted(2, x+"fim")}, 0,
		10); shape(got) != "0+2(simhash) 1" {
		t.Errorf("%q", shape(got))
	}
}

// A cached fingerprint belongs to the record as it is now.
func TestKeptFingerprintsFollowTheRecord(t *testing.T) {
	c := newFingerprints()
	text := strings.Repeat("palavras que dizem alguma coisa de um lugar ", 20)
	r := store.Record{Key: "web:http://a.example/", Kind: store.KindPage, Text: text, Copies: "1-00"}
	r.FetchedAt = time.Unix(1, 0)
	first := c.of(&r)
	if len(first) == 0 || !bytes.Equal(first, c.of(&r)) {
		t.Fatalf("%x, then %x", first, c.of(&r))
	}
	for what, change := range map[string]func(r *store.Record){
		"fetched again": func(r *store.Record) { r.FetchedAt, r.Text = time.Unix(2, 0), "outras "+text[7:] },
		"another text":  func(r *store.Record) { r.Text = "P" + r.Text[1:] + "!" },
		"longer":        func(r *store.Record) { r.Text += "e mais esta" },
		"deleted":       func(r *store.Record) { r.Deleted = true },
		"noindex":       func(r *store.Record) { r.NoIndex = true },
		"no copy":       func(r *store.Record) { r.Copies = "" },
		"dated":         func(r *store.Record) { r.PublishedAt = new(time.Unix(5, 0)) },
	} {
		changed := r
		change(&changed)
		if bytes.Equal(first, c.of(&changed)) {
			t.Errorf("%s: the print of before", what)
		}
	}
	if !bytes.Equal(first, c.of(&r)) {
		t.Error("another print of the same record")
	}
}
