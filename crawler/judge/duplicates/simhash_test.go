package duplicates

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

func TestHashGolden(t *testing.T) {
	// The first four values are those of Google's CityHash64 1.1.
	for text, want := range map[string]uint64{
		"":        0x9ae16a3b2f90404f,
		"twitter": 0x03aece15c4efc109,
		"毛主席":     0x9bf8949782d98074,
		"伟大":      0x03079e5821ce963a,
	} {
		if got := Hash(text); got != want {
			t.Errorf("Hash(%q) = %016x, want %016x", text, got, want)
		}
	}
}

// The paper's example: a repeated word must not change the fingerprint. With counts as weights it
// would change (cmd/echo-lab/duplicates).
func TestPaperExample(t *testing.T) {
	long := []string{"毛主席", "伟大", "伟大", "伟大"}
	short := []string{"毛主席", "伟大"}
	if a, b := Simhash(long), Simhash(short); a != b || a != 0x0300941000c88030 {
		t.Errorf("with sets %016x and %016x", a, b)
	}
	texts := []Text{{ID: "1", Text: "毛主席伟大，伟大，伟大"}, {ID: "2", Text: "毛主席伟大"}}
	if m, ok := (Options{}).Compare(NewFingerprint(texts[0]), NewFingerprint(texts[1])); !ok || m.Distance != 0 ||
		m.Reason != BySimhash {
		t.Errorf("as texts: %+v %v", m, ok)
	}
}

func TestSimhashIgnoresOrderAndRepetition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-zçã]{1,5}`), 0, 600).Draw(t, "words")
		other := append(slices.Clone(words), words...)
		rng := newRand(rapid.Uint64().Draw(t, "seed"))
		rng.Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
		if a, b := Simhash(words), Simhash(other); a != b {
			t.Fatalf("%016x is not %016x", a, b)
		}
		if got, want := Simhash(words), plainSimhash(words); got != want {
			t.Fatalf("got %016x, the plain way %016x", got, want)
		}
	})
}

// plainSimhash follows the definition literally.
func plainSimhash(words []string) uint64 {
	var v [64]int
	seen := map[string]bool{}
	for _, w := range words {
		if seen[w] {
			continue
		}
		seen[w] = true
		for i := range v {
			v[i] += int(Hash(w)>>i&1)*2 - 1
		}
	}
	var out uint64
	for i, n := range v {
		if n > 0 {
			out |= 1 << i
		}
	}
	return out
}

func TestTokens(t *testing.T) {
	for text, want := range map[string]string{
		"The quick, quick fox!":          "the quick quick fox",
		"don't stop O’Neill 's":          "don't stop o’neill s",
		"custa 3,50 € ou 1.000.000":      "custa 3,50 ou 1.000.000",
		"fim. Novo":                      "fim novo",
		"ver https://t.co/abc e www.x.y": "ver e",
		"https://t.co/abc":               "",
		"É a FÚRIA do açúcar":            "é a fúria do açúcar",
		"ＡＢＣ １２３":                        "abc 123",
		"北京大学":                           "北京 京大 大学",
		"我 love 北京":                      "我 love 北京",
		"テスト":                            "テス スト",
		"#hashtag @user :-)":             "hashtag user",
		"🎉🎉":                             "",
		"snake_case x2":                  "snake_case x2",
		"":                               "",
	} {
		if got := strings.Join(Tokens(text), " "); got != want {
			t.Errorf("Tokens(%q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzTokens(f *testing.F) {
	f.Add("é http://a.b/c 3.14 don't 北京")
	f.Add("\xff'a'.1.")
	f.Fuzz(func(t *testing.T, text string) {
		for _, tok := range Tokens(text) {
			if tok == "" {
				t.Fatal("empty token")
			}
		}
		p := NewFingerprint(Text{ID: "x", Text: text})
		q, err := DecodeFingerprint(p.Append(nil))
		if err != nil || !slices.Equal(p.Units, q.Units) || p.Bits != q.Bits {
			t.Fatalf("round trip: %v", err)
		}
		if m, ok := (Options{}).Compare(p, q); ok != (p.Features > 0) || ok && m.Reason != ByExact &&
			m.Reason != ByOfficial {
			t.Fatalf("not a copy of itself: %+v %v", m, ok)
		}
	})
}
