// Package duplicatestest generates test texts from a language of invented words, and edited copies
// of them.
package duplicatestest

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// Vocabulary is a language of invented words. Words are drawn by Zipf's law.
type Vocabulary struct {
	Rand  *rand.Rand
	zipf  *rand.Zipf
	words []string
}

// NewVocabulary invents size words. None of them is a negation.
func NewVocabulary(seed uint64, size int) *Vocabulary {
	rng := rand.New(rand.NewPCG(seed, 7))
	v := &Vocabulary{Rand: rng, zipf: rand.NewZipf(rng, 1.1, 8, uint64(size-1))}
	const consonants, vowels = "bcdfglmnprstv", "aeiou"
	for len(v.words) < size {
		var b strings.Builder
		for range 1 + rng.IntN(4) {
			b.WriteByte(consonants[rng.IntN(len(consonants))])
			b.WriteByte(vowels[rng.IntN(len(vowels))])
		}
		if w := b.String(); w != "no" && w != "none" {
			v.words = append(v.words, w)
		}
	}
	return v
}

// Word draws a word.
func (v *Vocabulary) Word() string { return v.words[v.zipf.Uint64()] }

// Text draws n words.
func (v *Vocabulary) Text(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = v.Word()
	}
	return out
}

// Edit replaces, adds or removes n words at different places.
func (v *Vocabulary) Edit(text []string, n int) []string {
	out := slices.Clone(text)
	places := v.Rand.Perm(len(out))[:n]
	slices.Sort(places)
	slices.Reverse(places)
	for _, at := range places {
		switch v.Rand.IntN(4) {
		case 0:
			out = slices.Delete(out, at, at+1)
		case 1:
			out = slices.Insert(out, at, v.Word())
		default:
			out[at] = v.Word()
		}
	}
	return out
}
