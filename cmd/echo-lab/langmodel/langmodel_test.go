package langmodel

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/cmd/echo-lab/twitterecho"
	"github.com/echo-node/echo-node/crawler/judge/lang"
	"github.com/echo-node/echo-node/partition/racetest"
)

func gz(t *testing.T, file string, lines ...string) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, strings.Join(lines, "\n")+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	gz(t, filepath.Join(dir, "train/pt-PT.ui.tsv.gz"), "pt-PT\tguardar o ficheiro", "pt-PT\tSave a brush",
		"pt-PT\tdesligar o ecrã")
	gz(t, filepath.Join(dir, "train/pt-PT.ui.src.gz"), "a", "gimp-help", "b")
	gz(t, filepath.Join(dir, "ambiguous_pt.tsv.gz"), "pt\to mar")
	got, err := Load(dir)
	want := []Sample{{lang.PtPT, "ui", "a", "guardar o ficheiro"}, {lang.PtPT, "ui", "b", "desligar o ecrã"},
		{lang.Pt, "ui", "ambiguous", "o mar"}}
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%v, %v, want %v", got, err, want)
	}
	gz(t, filepath.Join(dir, "train/pt-PT.ui.src.gz"), "a")
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "3 texts, 1 sources") {
		t.Errorf("%v", err)
	}
	gz(t, filepath.Join(dir, "train/tlh.ui.tsv.gz"), "tlh\tqapla")
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("an empty directory loads")
	}
}

// catalogue writes a .mo file as the gettext manual describes it.
func catalogue(t *testing.T, file string, texts [][2]string) {
	t.Helper()
	var ids, strs, data []byte
	at := 28 + 16*len(texts)
	for side, table := range []*[]byte{&ids, &strs} {
		for _, x := range texts {
			*table = binary.LittleEndian.AppendUint32(*table, uint32(len(x[side])))
			*table = binary.LittleEndian.AppendUint32(*table, uint32(at+len(data)))
			data = append(data, x[side]...)
			data = append(data, 0)
		}
	}
	var b []byte
	for _, v := range []uint32{0x950412de, 0, uint32(len(texts)), 28, uint32(28 + 8*len(texts)), 0, 0} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	b = slices.Concat(b, ids, strs, data)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCatalogues(t *testing.T) {
	dir := t.TempDir()
	catalogue(t, filepath.Join(dir, "de/LC_MESSAGES/tool.mo"), [][2]string{
		{"", "Content-Type: text/plain"}, {"cannot open %s", "%s kann nicht geöffnet werden"},
		{"same here too", "same here too"}, {"short", "kurz"},
	})
	got, err := Catalogues(dir)
	want := []Sample{{lang.Other, "ui-de", "tool", "kann nicht geöffnet werden"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if _, err := Catalogues(t.TempDir()); err == nil {
		t.Error("no catalogues, no error")
	}
	if err := os.WriteFile(filepath.Join(dir, "de/LC_MESSAGES/tool.mo"), bytes.Repeat([]byte{7}, 40),
		0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Catalogues(dir); err == nil {
		t.Error("what is no catalogue is read")
	}
}

// What only one variety has of a source is left out, and so are sources without a licence for
// training.
func TestPairedAndHeldOut(t *testing.T) {
	got := paired([]Sample{{lang.PtPT, "ui", "a", "1"}, {lang.PtPT, "ui", "a", "2"}, {lang.PtBR, "ui", "a", "3"},
		{lang.PtBR, "ui", "b", "4"}, {lang.Es, "ui", "c", "5"}, {lang.PtPT, "docs", "b", "6"}})
	var kept string
	for _, s := range got {
		kept += s.Text
	}
	if kept != "135" {
		t.Errorf("kept %q, want 135", kept)
	}
	if !(Sample{Source: "git:abapinho"}).heldOut() || (Sample{Source: "git:UD"}).heldOut() {
		t.Error("held out is the wrong source")
	}
}

// The written pairs are read completely, their sides differ, each occurs once, and what the
// data also has is left out.
func TestWritten(t *testing.T) {
	all := written(nil)
	if len(all) < 2*20000 {
		t.Fatalf("%d texts", len(all))
	}
	seen := map[string]bool{}
	for i := 0; i < len(all); i += 2 {
		p, b := all[i], all[i+1]
		if p.Lang != lang.PtPT || b.Lang != lang.PtBR || p.Register != b.Register || p.Source != b.Source ||
			p.Text == b.Text || p.Text == "" || b.Text == "" || strings.Contains(b.Text, "\t") {
			t.Errorf("%+v beside %+v", p, b)
		}
		if seen[p.Text+"\t"+b.Text] {
			t.Errorf("%q is there twice", p.Text)
		}
		seen[p.Text+"\t"+b.Text] = true
	}
	shout := Sample{Lang: lang.PtBR, Source: "x", Text: stripAccents(strings.ToUpper(all[1].Text))}
	for _, s := range written([]Sample{shout}) {
		if s.Text == all[0].Text || s.Text == all[1].Text {
			t.Errorf("%q is learnt and tested on", s.Text)
		}
	}
}

func TestGrammarIsWrittenOut(t *testing.T) {
	g := newGrammar()
	if len(g.phrases[0]) < 200 || len(g.phrases[1]) < 200 || len(g.public[0]) < 100 || len(g.public[1]) < 100 ||
		len(g.verbs) < 40 || len(g.short[0]) < 20 {
		t.Fatalf("the list is not read whole")
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 5000 {
		text := g.sentence(i%2, r)
		if words := strings.FieldsFunc(text,
			func(r rune) bool { return strings.ContainsRune(" ,.!?-", r) }); len(words) == 0 ||
			slices.ContainsFunc(words, func(w string) bool { return len(w) == 1 && strings.Contains("VNSXYO", w) }) {
			t.Fatalf("%q", text)
		}
	}
	if got := g.casual(0, "não sei", rand.New(rand.NewPCG(3, 4))); got == "" {
		t.Error("nothing left")
	}
}

// A training on made sentences learns them, a second one gives the same result, and its report
// adds up.
func TestTrain(t *testing.T) {
	texts, made := 2400, 400
	// Under the race detector the quality is not checked, only that parts may be trained in
	// parallel.
	if racetest.Enabled {
		texts, made = 120, 20
	}
	g, r := newGrammar(), rand.New(rand.NewPCG(5, 6))
	var samples []Sample
	for i := range texts {
		source, register := fmt.Sprint("s", i%20), []string{"ui", "docs"}[i/20%2]
		v := lang.Lang(i % 3)
		if text := "el perro come la carne del vecino y la niña corre por la calle " + fmt.Sprint(strings.Repeat("muy ",
			i%4)); v == lang.Es {
			samples = append(samples, Sample{v, register, source, text})
		} else {
			samples = append(samples, Sample{v, register, fmt.Sprint("s", i/3%20), g.sentence(int(v), r) +
				", " + g.sentence(int(v), r)})
		}
	}
	o := Default()
	o.Bits, o.Epochs, o.Made, o.People = 13, 1, made, 15
	o.VarietyBits, o.VarietyEpochs, o.Written = 16, 2, false
	first, err := Train(context.Background(), samples, nil, o, true, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Train(context.Background(), samples, nil, o, false, io.Discard)
	if err != nil || !bytes.Equal(first.Weights, second.Weights) || first.Paper != second.Paper {
		t.Errorf("two trainings differ, or %v", err)
	}
	if _, err := lang.Parse(first.Weights); err != nil {
		t.Error(err)
	}
	if p, err := twitterecho.ParseParams(first.Paper.Encode()); err != nil || p != first.Paper {
		t.Errorf("fitted %+v, read %+v, %v", first.Paper, p, err)
	}
	for _, p := range first.Report.People {
		if p.Register == "all" && !racetest.Enabled && (p.Ours.Precision < 0.99 || p.Ours.Recall < 0.95) {
			t.Errorf("%s: %+v of what it was made for", p.Setting, p.Ours)
		}
	}
	var out strings.Builder
	if err := first.Report.Write(&out); err != nil || !strings.Contains(out.String(), "whatlanggo") {
		t.Errorf("%v, %s", err, out.String())
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Train(ctx, samples, nil, o, false, io.Discard); err == nil {
		t.Error("a cancelled training goes on")
	}
}
