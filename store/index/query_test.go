package index

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/index/words"
)

func FuzzParse(f *testing.F) {
	a := words.New().Queries
	for _, s := range []string{"", `"`, `-"`, "--", `a"b"c`, "-a -b", "l’eau", "東京", "\xff\xfe", `"" -"" ''`,
		strings.Repeat("a ", 100)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parse(a, s)
		if err != nil {
			if !errors.Is(err, ErrQuery) {
				t.Fatal(err)
			}
			return
		}
		n := 0
		for _, list := range [][][]term{p.must, p.not} {
			for _, words := range list {
				if n += len(words); len(words) == 0 {
					t.Fatal("an empty phrase")
				}
			}
		}
		if n > MaxQueryTerms || len(p.terms) > n {
			t.Fatalf("%d words", n)
		}
	})
}

// A snippet is one short line for every text and every passage.
func FuzzSnippet(f *testing.F) {
	f.Add("A cidade de Lisboa fica junto ao rio", uint16(12), uint16(18))
	f.Add(strings.Repeat("é", 500)+"x", uint16(1000), uint16(1001))
	f.Fuzz(func(t *testing.T, text string, from, to uint16) {
		said := []passage{{span{0, min(1, len(text))}, 0}, {span{int(from), int(max(from, to))}, 1}}
		s := snippet(text, said)
		if !utf8.ValidString(s) || len(s) > 4*snippetBytes || strings.ContainsAny(s, "\n\x00") {
			t.Fatalf("%q", s)
		}
	})
}

// The snippet of a hit shows the words of the query, as a phrase if the query has one, however far
// from the beginning. If only the title has them, it shows the start of the text.
func TestSnippetShowsThePhrase(t *testing.T) {
	s := newStore(t)
	ix := openIndex(t, filepath.Join(t.TempDir(), "index"), s)
	far := strings.Repeat("nada aqui, nem passa o rio. ", 20000)
	commit(t, s, page("a.example", 1, "A ponte", "Um rio em Lisbôa. "+far+"O rio\n\nTejo passa em Lisbôa, e vê-se em www.tejo.example."+strings.Repeat(" nada mais.", 200)))
	commit(t, s, page("b.example", 2, "Só no título", "short text"))
	flush(t, ix)
	for query, want := range map[string]string{
		"lisboa tejo":       "O rio Tejo passa em Lisbôa",
		`"rio tejo" lisboa`: "O rio Tejo passa em Lisbôa",
		"tejo.example":      "vê-se em www.tejo.example",
		"mais":              "nada mais.",
		"ponte":             "Um rio em Lisbôa.",
		"titulo":            "short text",
	} {
		res, err := ix.Search(context.Background(), Query{Text: query}, nil)
		if err != nil || len(res.Hits) != 1 {
			t.Fatalf("%s: %d hits, %v", query, len(res.Hits), err)
		}
		if got := res.Hits[0].Snippet; !strings.Contains(got, want) || len(got) > 2*snippetBytes {
			t.Errorf("%s: %q, want %q in it", query, got, want)
		}
	}
}

func TestQueryCaps(t *testing.T) {
	s := newStore(t)
	ix := openIndex(t, filepath.Join(t.TempDir(), "index"), s)
	for _, q := range []Query{{Text: strings.Repeat("x", MaxQueryBytes+1)},
		{Text: strings.Repeat("x ", MaxQueryTerms+1)}, {Limit: MaxHits + 1}, {Offset: MaxHits, Limit: 1}} {
		if _, err := ix.Search(context.Background(), q, nil); !errors.Is(err, ErrQuery) {
			t.Errorf("%.20v: %v", q, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	commit(t, s, page("a.example", 1, "t", "words"))
	flush(t, ix)
	if _, err := ix.Search(ctx, Query{Text: "words"}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a search given up: %v", err)
	}
}

func TestPagesOfAnAnswer(t *testing.T) {
	s := newStore(t)
	ix := openIndex(t, filepath.Join(t.TempDir(), "index"), s)
	for n := range 25 {
		commit(t, s, page("a.example", n, "t", "words "+strings.Repeat("other ", n%5)))
	}
	flush(t, ix)
	all := find(t, ix, Query{Text: "words"})
	var got []string
	for off := 0; off < 30; off += 7 {
		res, err := ix.Search(context.Background(), Query{Text: "words", Offset: off, Limit: 7}, nil)
		if err != nil || res.Total != 25 {
			t.Fatal(res.Total, err)
		}
		for _, h := range res.Hits {
			got = append(got, strings.TrimPrefix(string(h.Key), "web:https://"))
		}
	}
	if len(all) != 25 || strings.Join(all, " ") != strings.Join(got, " ") {
		t.Errorf("%v\n%v", all, got)
	}
}

func TestMergeIsCommutative(t *testing.T) {
	a, b := Stats{Docs: 3, DF: map[string]uint64{"x": 1, "y": 2}},
		Stats{Docs: 1<<64 - 1, DF: map[string]uint64{"y": 1<<64 - 1}}
	if x, y := fmt.Sprint(a.Merge(b)), fmt.Sprint(b.Merge(a)); x != y || a.DF["y"] != 2 {
		t.Errorf("%s, %s", x, y)
	}
	if w := a.Merge(b).weight("y"); !(w >= 0) {
		t.Errorf("weight %v of hostile counts", w)
	}
}

func TestClosedIndex(t *testing.T) {
	ix, err := Open(filepath.Join(t.TempDir(), "index"), newStore(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	closeIndex(t, ix)
	closeIndex(t, ix)
	_, err1 := ix.Search(context.Background(), Query{}, nil)
	for _, err := range []error{err1, ix.Flush(context.Background()), ix.Run(context.Background())} {
		if !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
}

// BenchmarkSearch: 5,000 pages of 150 words; all slices, and 1,000 of them.
func BenchmarkSearch(b *testing.B) {
	s := newStore(b)
	for n := range 5000 {
		commit(b, s, page(fmt.Sprintf("h%d.example", n%1500), n, fmt.Sprint("title ", n%50),
			strings.Repeat(fmt.Sprintf("common w%d w%d ", n%10, n%100), 50)))
	}
	ix := openIndex(b, filepath.Join(b.TempDir(), "index"), s)
	flush(b, ix)
	all := s.Charter().Slices()
	for name, sls := range map[string][]partition.Slice{"all": nil, "some": all[:1000], "every": all} {
		for _, text := range []string{"w5 w45", "common"} {
			b.Run(name+"/"+text, func(b *testing.B) {
				for b.Loop() {
					if _, err := ix.Search(context.Background(), Query{Text: text, Slices: sls}, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
