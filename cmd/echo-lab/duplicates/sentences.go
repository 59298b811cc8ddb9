package duplicates

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/echo-node/echo-node/crawler/judge/duplicates"
)

// Real is the result for edits planted into the real sentences of one file.
type Real struct {
	Name      string  `json:"name"`
	Sentences int     `json:"sentences"`
	Planted   int     `json:"planted"`
	Recall    float64 `json:"recall"`
	Right     int     `json:"right"`
	// pairs that were not planted: wrong, or sentences that were nearly equal before
	Wrong int `json:"other"`
}

// Precision returns the share of the planted pairs among those found.
func (r Real) Precision() float64 { return Score{Right: r.Right, Wrong: r.Wrong}.Precision() }

// leastReal is the smallest recall of an edit of one word in real sentences. A third of the
// edits replace a word by another one of the same corpus. These can be names and negations,
// which are deliberately not folded.
const leastReal = 0.95

// The number of words of a sentence that is used.
const (
	fewestReal = 13
	mostReal   = 17
)

// plantEvery is how many sentences there are for each one that gets a copy with one word
// edited.
const plantEvery = 5

// Sentences plants edits of one word into the sentences of 13 to 17 words of the files
// train/LANG.REGISTER.tsv.gz in dir. Each line has one sentence, after a tab.
func Sentences(ctx context.Context, dir string, registers []string, talk io.Writer) ([]Real, error) {
	var paths []string
	for _, register := range registers {
		found, err := filepath.Glob(filepath.Join(dir, "train", "*."+register+".tsv.gz"))
		if err != nil {
			return nil, fmt.Errorf("duplicates: %w: register %q: %w", ErrOptions, register, err)
		}
		paths = append(paths, found...)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("duplicates: %w: no train/*.tsv.gz of registers %v in %s", ErrOptions, registers, dir)
	}
	slices.Sort(paths)
	var out []Real
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(filepath.Base(path), ".tsv.gz")
		fmt.Fprintf(talk, "real sentences of %s\n", name)
		sentences, err := readSentences(path)
		if err != nil {
			return nil, fmt.Errorf("duplicates: %s: %w", path, err)
		}
		if len(sentences) > 0 {
			out = append(out, measureReal(name, sentences))
		}
	}
	return out, nil
}

// measureReal plants edits and finds them.
func measureReal(name string, sentences [][]string) Real {
	r := Real{Name: name, Sentences: len(sentences)}
	words := slices.Concat(sentences...)
	rng := rand.New(rand.NewPCG(8, 7))
	var texts []duplicates.Text
	add := func(kind string, i int, words []string) {
		id := fmt.Sprintf("%s/0/%d", kind, i)
		texts = append(texts, duplicates.Text{ID: id, Time: int64(len(texts)), Text: strings.Join(words, " ")})
	}
	for i, s := range sentences {
		add(baseText, i, s)
		if i%plantEvery != 0 {
			continue
		}
		r.Planted++
		edited, at := slices.Clone(s), rng.IntN(len(s))
		switch rng.IntN(3) {
		case 0:
			edited = slices.Delete(edited, at, at+1)
		case 1:
			edited = slices.Insert(edited, at, words[rng.IntN(len(words))])
		default:
			edited[at] = words[rng.IntN(len(words))]
		}
		add(copyText, i, edited)
	}
	s := score(duplicates.Options{}, texts, r.Planted)[0]
	r.Recall, r.Right, r.Wrong = float64(s.Right)/float64(r.Planted), s.Right, s.Wrong
	return r
}

// readSentences reads the sentences of a file, each once, as words.
func readSentences(path string) ([][]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	var out [][]string
	seen := make(map[string]bool)
	lines := bufio.NewScanner(unzipped)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		_, text, _ := strings.Cut(lines.Text(), "\t")
		if words := strings.Fields(text); len(words) >= fewestReal && len(words) <= mostReal && !seen[text] {
			seen[text] = true
			out = append(out, words)
		}
	}
	return out, lines.Err()
}
