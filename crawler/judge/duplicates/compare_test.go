package duplicates

import (
	"fmt"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/crawler/judge/duplicates/duplicatestest"
)

func TestCompare(t *testing.T) {
	const base = "o presidente da câmara disse ontem que a obra fica pronta antes do verão"
	for _, c := range []struct {
		name, a, b string
		want       Reason // "" when the texts are no copies
		distance   int
	}{
		{"one word", base, strings.Replace(base, "ontem", "hoje", 1), ByEdit, 1},
		{"typing error", base, strings.Replace(base, "pronta", "prontta", 1), BySimhash, 3},
		{"comment before", base, "olha esta notícia: " + base, ByEdit, 3},
		{"comment behind", base, base + " acredito pouco", ByEdit, 2},
		{"negation", base, strings.Replace(base, "fica", "não fica", 1), "", 0},
		{"negation without accent", base, strings.Replace(base, "fica", "nao fica", 1), "", 0},
		{"negating comment", base, "não concordo: " + base, "", 0},
		{"english negation", "the new bridge will open to traffic before the end of summer",
			"the new bridge will not open to traffic before the end of summer", "", 0},
		{"contraction", "they do think that the bridge opens to traffic this summer",
			"they don't think that the bridge opens to traffic this summer", "", 0},
		{"english no", "there is a good reason to close the bridge this year",
			"there is no good reason to close the bridge this year", "", 0},
		{"portuguese no", "o jogo decorreu no estádio da cidade com muito público",
			"o jogo decorreu num estádio da cidade com muito público", ByEdit, 1},
		{"number", "a temperatura sobe para 31 graus na região de lisboa amanhã",
			"a temperatura sobe para 32 graus na região de lisboa amanhã", "", 0},
		{"name", "o tribunal de Lisboa condenou o antigo autarca a pena suspensa",
			"o tribunal de Braga condenou o antigo autarca a pena suspensa", "", 0},
		{"case", base, strings.ToUpper(base), BySimhash, 0},
		{"chinese word", "今天北京的天气非常好我们一起去公园玩吧", "今天上海的天气非常好我们一起去公园玩吧", ByEdit, 1},
		{"chinese negation", "今天北京的天气很好我们一起去公园玩吧", "今天北京的天气不好我们一起去公园玩吧", "", 0},
		{"moved negation", "não gosto de peixe mas gosto de carne com batatas fritas",
			"gosto de peixe mas não gosto de carne com batatas fritas", "", 0},
		{"unlike", base, "um texto que fala de outra coisa e só por acaso tem palavras em comum", "", 0},
		{"seven words", "hoje há mais sol em toda faro", "hoje há mais chuva em toda faro", "", 0},
	} {
		a, b := NewFingerprint(Text{ID: "a", Text: c.a}), NewFingerprint(Text{ID: "b", Text: c.b})
		m, ok := (Options{}).Compare(a, b)
		if ok != (c.want != "") || ok && (m.Reason != c.want || m.Distance != c.distance) {
			t.Errorf("%s: %v %+v, want %q %d (bits %d)", c.name, ok, m, c.want, c.distance, Distance(a.Bits, b.Bits))
		}
		if n, back := (Options{}).Compare(b, a); back != ok || n != m {
			t.Errorf("%s: not symmetric", c.name)
		}
	}
}

// In a bucket with more texts than can be compared pair by pair, edits are still found.
func TestCrowdedBucket(t *testing.T) {
	v := duplicatestest.NewVocabulary(5, 5000)
	head := "este modelo de mensagem começa sempre pelas mesmas doze palavras e depois diz "
	var texts []Text
	const n = 800
	for i := range n {
		body := v.Text(4)
		texts = append(texts, Text{ID: fmt.Sprint(i), Time: int64(i), Text: head + strings.Join(body, " ")})
		if i%10 == 0 {
			body[3] = "fim"
			texts = append(texts, Text{ID: fmt.Sprintf("%d'", i), Time: int64(n + i),
				Text: head + strings.Join(body, " ")})
		}
	}
	groups := groupTexts(Options{}, texts...)
	found := 0
	for i := 0; i < n; i += 10 {
		if groupOf(groups, fmt.Sprintf("%d'", i)) != "" {
			found++
		}
	}
	if found < n/10*8/10 {
		t.Errorf("found %d of %d", found, n/10)
	}
}

func TestDecodePrint(t *testing.T) {
	good := NewFingerprint(Text{ID: "id", Time: -5, Text: "um texto qualquer com 3 palavras"}).Append(nil)
	for n := range good {
		if _, err := DecodeFingerprint(good[:n]); err == nil {
			t.Errorf("%d bytes of %d are accepted", n, len(good))
		}
	}
	if _, err := DecodeFingerprint(append(good, 0)); err == nil {
		t.Error("a trailing byte is accepted")
	}
	good[0]++
	if _, err := DecodeFingerprint(good); err == nil {
		t.Error("another version is accepted")
	}
}

func FuzzDecodePrint(f *testing.F) {
	f.Add(NewFingerprint(Text{ID: "id", Text: "um texto qualquer"}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := DecodeFingerprint(b); err == nil {
			(Options{}).Compare(p, p)
			(Options{}).Buckets(nil, p)
		}
	})
}
