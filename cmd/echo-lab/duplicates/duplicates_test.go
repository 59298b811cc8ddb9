package duplicates

import (
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/crawler/judge/duplicates"
	"github.com/echo-node/echo-node/crawler/judge/duplicates/duplicatestest"
	"github.com/echo-node/echo-node/partition/racetest"
)

// Recall by kind of edit, and precision among texts of the same topics, 15 words long. The
// required values are those of Faults.
func TestQuality(t *testing.T) {
	o := Options{Seed: 21, PerClass: 200, Words: 15, Texts: 10_000}
	if racetest.Small(t) {
		o.Texts = 3000
	}
	r, err := Measure(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("precision %.4f (%d right, %d wrong)", r.All.Ours.Precision(), r.All.Ours.Right, r.All.Ours.Wrong)
	for i, c := range r.Classes {
		t.Logf("%-16s found %.3f, simhash alone %.3f, counts %.3f", c.Name, c.Ours.Found, c.Paper.Found, c.Counts)
		want, atMost := 0.0, 1.0
		switch {
		case i < 4:
			want = 1
		case c.Name == "1 word edited":
			want = 0.95
		case c.Name == "negated" || c.Name == "number swapped":
			atMost = 0
		}
		if c.Ours.Found < want || c.Ours.Found > atMost {
			t.Errorf("%s: found %.3f, want %.2f to %.2f", c.Name, c.Ours.Found, want, atMost)
		}
		if i < 4 && c.Paper.Found < 1 {
			t.Errorf("%s: equal sets of words that the paper's method does not find: %.3f", c.Name, c.Paper.Found)
		}
	}
	if p := r.All.Ours.Precision(); p < 0.98 {
		t.Errorf("precision %.4f", p)
	}
	for _, x := range r.Rates {
		t.Logf("%s: planted %.4f, found %.4f, by the paper's method %.4f", x.Language, x.Planted, x.Ours, x.Paper)
	}
	for _, fault := range r.Faults() { // including the rates
		t.Error(fault)
	}
	for i, d := range r.Distance {
		t.Logf("%2d bits: precision %.4f, recall %.4f", d.Bits, d.Precision, d.Recall)
		if d.Bits != i+1 || i > 0 && d.Recall < r.Distance[i-1].Recall-0.01 {
			t.Errorf("%+v", d)
		}
	}
}

// A report below the required values says so, each fault once.
func TestFaults(t *testing.T) {
	r := Report{Words: 15, Rates: []Rate{{"English", 0.09, 0.0885, 0.0915}, {"Chinese", 0.07, 0.0725, 0.07}},
		Real: []Real{{Name: "good", Recall: 0.95, Right: 98, Wrong: 2}, {Name: "deaf", Recall: 0.9, Right: 9}}}
	for _, c := range classes() {
		r.Classes = append(r.Classes, Class{Name: c.name, Ours: Score{Found: c.least}})
	}
	r.All.Ours = Score{Right: 98, Wrong: 2}
	if got := r.Faults(); len(got) != 2 {
		t.Errorf("faults %v, want those of Chinese and of deaf", got)
	}
	r.Classes[0].Ours.Found, r.Classes[4].Ours.Found, r.Classes[10].Ours.Found = 0.995, 0.94, 0.005
	r.All.Ours.Wrong = 3
	if got := r.Faults(); len(got) != 6 {
		t.Errorf("faults %v, want six", got)
	}
	r.Words = 10
	if got := r.Faults(); len(got) != 3 {
		t.Errorf("faults %v of texts of another length, want three", got)
	}
}

// The paper's example: repeating a word must not change the fingerprint, as it does with
// counts.
func TestPaperExample(t *testing.T) {
	if got := PaperExample(); got != (Example{Sets: 0, Counts: 16}) {
		t.Errorf("example %+v", got)
	}
	if got := CountSimhash([]string{"毛主席", "伟大", "伟大", "伟大"}); got != 0x03079e5821ce963a {
		t.Errorf("with counts %016x", got)
	}
	words := strings.Fields("um dois três quatro cinco seis")
	if got, want := CountSimhash(words), duplicates.Simhash(words); got != want {
		t.Errorf("of words that stand once %016x, want %016x", got, want)
	}
}

func TestRemovable(t *testing.T) {
	groups := []duplicates.Group{make(duplicates.Group, 3), make(duplicates.Group, 2)}
	if got := removable(30, groups); got != 0.1 {
		t.Errorf("3 of 30 are %v", got)
	}
}

// Files of real sentences are read in the form of train-lang, only those of the wanted
// registers.
func TestSentences(t *testing.T) {
	dir := t.TempDir()
	v := duplicatestest.NewVocabulary(4, 3000)
	for name, words := range map[string]int{"pt-PT.news": 15, "pt-PT.ui": 15, "en.news": 3} {
		var b strings.Builder
		for range 100 {
			fmt.Fprintf(&b, "%s\t%s\n", name, strings.Join(v.Text(words), " "))
		}
		write(t, filepath.Join(dir, "train", name+".tsv.gz"), b.String())
	}
	got, err := Sentences(t.Context(), dir, []string{"news"}, t.Output())
	if err != nil || len(got) != 1 || got[0].Name != "pt-PT.news" || got[0].Sentences != 100 || got[0].Planted != 20 {
		t.Fatalf("%+v %v", got, err)
	}
	if got[0].Recall < leastReal || got[0].Precision() < leastPrecision {
		t.Errorf("%+v", got[0])
	}
	for _, register := range []string{"blog", "["} {
		if _, err := Sentences(t.Context(), dir, []string{register}, t.Output()); err == nil {
			t.Errorf("register %q is read", register)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
