package copies

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestRealSentences plants one-word edits into real sentences of 13 to 17 words,
// one a line behind a tab in the gzipped file that ECHO_SENTENCES names. A third of the
// edits put in a word of the same corpus for another, names and negations
// included, which are not folded on purpose.
func TestRealSentences(t *testing.T) {
	path := os.Getenv("ECHO_SENTENCES")
	if path == "" {
		t.Skip("ECHO_SENTENCES names no file of sentences")
	}
	sentences := readSentences(t, path)
	var words []string
	for _, s := range sentences {
		words = append(words, s...)
	}
	rng := newRand(8)
	var texts []Text
	planted := 0
	for i, s := range sentences {
		texts = append(texts, Text{ID: fmt.Sprintf("base/0/%d", i), Time: int64(len(texts)), Text: strings.Join(s, " ")})
		if i%5 != 0 {
			continue
		}
		planted++
		edited, at := slices.Clone(s), rng.IntN(len(s))
		switch rng.IntN(3) {
		case 0:
			edited = slices.Delete(edited, at, at+1)
		case 1:
			edited = slices.Insert(edited, at, words[rng.IntN(len(words))])
		default:
			edited[at] = words[rng.IntN(len(words))]
		}
		texts = append(texts, Text{ID: fmt.Sprintf("copy/0/%d", i), Time: int64(len(texts)), Text: strings.Join(edited, " ")})
	}
	found := make([]float64, len(editClasses))
	groups := groupTexts(Options{}, texts...)
	right, wrong := measure(groups, found)
	t.Logf("%d sentences, %d edits: recall %.3f, %d right, %d other pairs", len(sentences), planted, found[0]/float64(planted), right, wrong)
	if found[0] < 0.95*float64(planted) || float64(right) < 0.98*float64(right+wrong) {
		t.Errorf("recall %.3f, precision %d of %d", found[0]/float64(planted), right, right+wrong)
	}
}

func readSentences(t *testing.T, path string) [][]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	seen := make(map[string]bool)
	for lines := bufio.NewScanner(unzipped); lines.Scan(); {
		_, text, _ := strings.Cut(lines.Text(), "\t")
		if words := strings.Fields(text); len(words) >= 13 && len(words) <= 17 && !seen[text] {
			seen[text] = true
			out = append(out, words)
		}
	}
	return out
}
