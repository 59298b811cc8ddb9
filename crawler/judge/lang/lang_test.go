package lang

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

// weightsDigest pins the embedded weights. New training changes it and the figures in the
// documentation.
const weightsDigest = "1d2473400e859242c46d4dc0fce41b6c0645a1b4970cc08e163fbb174912abd6"

func open(t testing.TB) *Judge {
	t.Helper()
	j, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestEmbeddedWeights(t *testing.T) {
	j := open(t)
	if j.Digest() != weightsDigest {
		t.Errorf("embedded weights have digest %s, want %s", j.Digest(), weightsDigest)
	}
	if len(embedded) > 5<<20 {
		t.Errorf("%d bytes of weights, want at most 5 MiB", len(embedded))
	}
	again, err := Parse(Encode(j.p, j.t, j.v))
	if err != nil || again.Digest() != j.Digest() {
		t.Errorf("encoding what was parsed gives %v, %v", again, err)
	}
}

func TestParseRefuses(t *testing.T) {
	good := []byte(embedded)
	other := Encode(Params{Bits: 4, VarietyBits: 4}, NewTable(4), NewVarieties(4))
	older := bytes.Clone(other[:len(other)-sha256.Size])
	older[len(magic)] = WeightsVersion - 1
	sum := sha256.Sum256(older)
	for name, b := range map[string][]byte{
		"nothing":       nil,
		"another file":  []byte(strings.Repeat("x", 1000)),
		"cut":           good[:len(good)-1],
		"one bit wrong": append(append([]byte{}, good[:500]...), append([]byte{good[500] ^ 1}, good[501:]...)...),
		"wrong size":    Encode(Params{Bits: 5, VarietyBits: 4}, NewTable(4), NewVarieties(4)),
		"too few":       Encode(Params{Bits: 4, VarietyBits: 5}, NewTable(4), NewVarieties(4)),
		"no varieties":  Encode(Params{Bits: 4}, NewTable(4), NewVarieties(0)),
		"older":         append(older, sum[:]...),
		"no bits":       Encode(Params{VarietyBits: 4}, NewTable(0), NewVarieties(4)),
	} {
		if _, err := Parse(b); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Parse(other); err != nil {
		t.Error(err)
	}
}

// The table of powers is the only place where floating point might differ between machines. No
// entry is so near to a half that its last bit matters.
func TestPowersRoundTheSameEverywhere(t *testing.T) {
	for i := range 256 {
		x := math.Exp2(-float64(i)/256) * (1 << 30)
		if _, frac := math.Modf(x); math.Abs(frac-0.5) < 1e-5 {
			t.Errorf("2^(-%d/256): %.9f is too near a half", i, x)
		}
	}
}

// verdictsDigest pins the verdicts of the embedded weights on golden. So another format of their
// file changes no verdict. Like weightsDigest, it changes with new training.
const verdictsDigest = "21f593598c043f166efd45c37bd001f5fb890abf28e6472ee396b2f3b92b2328"

func TestVerdictsStay(t *testing.T) {
	j, sum := open(t), sha256.New()
	judge := func(text string) {
		logits, bucket, ok := j.Logits(text)
		odds, among := j.Odds(text)
		v := j.Text(text)
		fmt.Fprintf(sum, "%v %d %v %d %d ", logits, bucket, ok, odds, among)
		fmt.Fprintf(sum, "%v %.6f %.6f\n", v.Lang, v.Confidence, v.Scores)
	}
	for i, g := range golden {
		words := strings.SplitAfter(g.text, " ")
		for n := range words {
			judge(strings.Join(words[n:], ""))
			judge(strings.Join(words[:n], ""))
		}
		person := j.Person()
		for k, other := range golden {
			judge(g.text + ". " + other.text)
			if k%3 != i%3 {
				person.Add(g.text)
				person.Add(other.text)
			}
		}
		v := person.Verdict()
		fmt.Fprintf(sum, "%v %.6f %d %d\n", v.Lang, v.Confidence, v.Texts, v.Judged)
		for _, share := range v.Shares {
			fmt.Fprintf(sum, "%v %.6f\n", share.Lang, share.Share)
		}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != verdictsDigest {
		t.Errorf("the verdicts have digest %s, want %s", got, verdictsDigest)
	}
}

// Sentences written for this test, none of them in the training data.
var golden = []struct {
	want Lang
	text string
}{
	{PtPT, "Malta, o comboio está atrasado outra vez, vou ter convosco ao café daqui a bocado"},
	{PtPT, "epá estou farto disto, tenho de arranjar outro telemóvel"},
	{PtPT, "a tua irmã ligou-me ontem à noite, diz que não vem ao jantar"},
	{PtPT, "estou a ver se consigo falar contigo antes de ires para a praia"},
	{PtPT, "A equipa marcou dois golos e o guarda-redes esteve muito bem"},
	{PtPT, "O utilizador tem de guardar o ficheiro antes de desligar o ecrã"},
	{PtBR, "Galera, o trem atrasou de novo, a gente se vê no bar daqui a pouco, beleza?"},
	{PtBR, "vc viu o jogo ontem? kkkkk que time horrível"},
	{PtBR, "sua irmã me ligou ontem de noite, disse que não vem pro jantar"},
	{PtBR, "tô tentando falar com você antes de você ir pra praia"},
	{PtBR, "O usuário precisa salvar o arquivo antes de desligar a tela"},
	{PtBR, "me manda uma mensagem quando você chegar em casa, tá bom?"},
	{Es, "El tren llega tarde otra vez, nos vemos en el bar dentro de un rato"},
	{Es, "no me lo puedo creer, qué partidazo hicieron anoche los chicos"},
	{Gl, "Hoxe choveu todo o día e non puidemos saír da casa coas nenas"},
	{Gl, "O concello abriu onte unha nova escola na parroquia"},
	{En, "The train is late again, see you at the bar in a while"},
	{En, "can't believe they lost that game, what a mess"},
	{Fr, "Le train est encore en retard, on se voit au bar tout à l'heure"},
	{Fr, "j'ai pas envie d'aller au boulot demain matin"},
	{It, "Il treno è di nuovo in ritardo, ci vediamo al bar tra poco"},
	{It, "non ho voglia di andare a lavorare domani mattina"},
	{Other, "Der Zug hat schon wieder Verspätung, wir sehen uns später in der Kneipe"},
	{Other, "De trein is weer te laat, ik zie je straks in het café"},
	{Other, "Pociąg znowu się spóźnia, do zobaczenia za chwilę w barze"},
	{Other, "Поезд снова опаздывает, увидимся позже"},
	{Other, "電車がまた遅れています、後で会いましょう"},
	{Und, ""},
	{Und, "https://example.test/a?b=c @ana #tbt 😀 12:30"},
	{Und, "ok"},
}

func TestGolden(t *testing.T) {
	j := open(t)
	for _, g := range golden {
		if v := j.Text(g.text); v.Lang != g.want {
			t.Errorf("%q: %v %.2f, want %v (%.2f)", g.text, v.Lang, v.Confidence, g.want, v.Scores)
		}
		if v := j.Text(g.text + " https://t.test/x1 @joao_silva #Lisboa 😂😂"); v.Lang != g.want {
			t.Errorf("%q with an address, a mention and a hashtag: %v, want %v", g.text, v.Lang, g.want)
		}
	}
}

// Words that both countries write in the same way show no variety, and the judge returns none.
func TestUnsureOfWhatIsTheSame(t *testing.T) {
	j := open(t)
	for _, text := range []string{"Bom dia", "sim", "não"} {
		if v := j.Text(text); v.Lang != Pt && v.Lang != Und {
			t.Errorf("%q: %v %.2f, want pt or und", text, v.Lang, v.Confidence)
		}
	}
}

func TestFoldsAccentsAndElongation(t *testing.T) {
	for _, c := range [][2]string{
		{"muuuuuito boooom", "muito bom"},
		{"kkkkkkkkk", "kkk"},
		{"hahahahahaha", "haha"},
		{"NÃO É", "não é"},
		{"ficou em casa http://x.test/y?z hoje", "ficou em casa, hoje"},
		{"vem (www.x.test/á) cá", "vem ( ) cá"},
		{"manda para ana.sousa@x.test já", "manda para ; já"},
	} {
		a, _, _ := Features(c[0], nil)
		b, _, _ := Features(c[1], nil)
		if len(a) != len(b) {
			t.Errorf("%q has %d features, %q %d", c[0], len(a), c[1], len(b))
			continue
		}
		for i := range a {
			if a[i] != b[i] {
				t.Errorf("%q and %q differ in feature %d", c[0], c[1], i)
				break
			}
		}
	}
}

// A text without its accents has no features that the full text lacks.
func TestStrippedIsASubset(t *testing.T) {
	const accents, none = "Então não há ninguém à espera do avô? Às três já lá estão",
		"Entao nao ha ninguem a espera do avo? As tres ja la estao"
	for name, features := range map[string]func(string) []uint64{
		"languages": func(text string) []uint64 { f, _, _ := Features(text, nil); return f },
		"varieties": func(text string) []uint64 { return VarietyFeatures(text, nil) },
	} {
		whole, bare := features(accents), features(none)
		has := map[uint64]bool{}
		for _, h := range whole {
			has[h] = true
		}
		for i, h := range bare {
			if !has[h] {
				t.Fatalf("%s: feature %d of %d is new", name, i, len(bare))
			}
		}
		if len(bare) >= len(whole) {
			t.Errorf("%s: %d features without accents, %d with", name, len(bare), len(whole))
		}
	}
}

// The frame of a sentence is the same in two sentences on other topics. It is not in a sentence in
// the other variety.
func TestFrames(t *testing.T) {
	shared := func(a, b string) (n int) {
		has := map[uint64]bool{}
		for _, h := range VarietyFeatures(a, nil) {
			has[h] = true
		}
		for _, h := range VarietyFeatures(b, nil) {
			if has[h] {
				n++
			}
		}
		return n
	}
	const said = "A rainha está a escrever uma carta ao seu irmão."
	like, unlike := shared(said, "A empresa está a resolver uma queixa ao seu cliente."),
		shared(said, "A empresa está resolvendo uma queixa de seu cliente.")
	if like < unlike+15 {
		t.Errorf("%d features in common with what is said alike, %d with what is not", like, unlike)
	}
	if n := len(VarietyFeatures("", nil)); n != 0 {
		t.Errorf("%d features of nothing", n)
	}
}

func sound(t interface{ Fatalf(string, ...any) }, v Verdict) {
	sum := 0.0
	for _, s := range v.Scores {
		if !(s >= 0 && s <= 1) {
			t.Fatalf("score %v", s)
		}
		sum += s
	}
	if math.Abs(sum-1) > 1e-9 || !(v.Confidence >= 0 && v.Confidence <= 1+1e-9) || v.Lang > Und {
		t.Fatalf("%+v: scores sum to %v", v, sum)
	}
}

// A repeated letter does not outweigh letters of another script.
func TestDrawnOutBesideAnotherScript(t *testing.T) {
	j := open(t)
	if a, b := j.Text("A𞤡ᾈ"), j.Text("AAAA𞤡ᾈ"); a != b {
		t.Errorf("%v, not %v", b, a)
	}
}

func TestProperties(t *testing.T) {
	j := open(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		if rapid.Bool().Draw(t, "of words") {
			text = golden[rapid.IntRange(0, len(golden)-1).Draw(t, "golden")].text
		}
		v := j.Text(text)
		sound(t, v)
		if again := j.Text(text); again != v {
			t.Fatalf("two answers for %q", text)
		}
		// Letters that are alone may be repeated any number of times.
		var long strings.Builder
		prev := rune(0)
		runes := []rune(text)
		for i, r := range runes {
			long.WriteRune(r)
			// A letter that folds to none of a to z, such as Ⱥ, counts each time, like a letter of
			// another script.
			alone := unicode.IsLetter(r) && letterOf(r) != 0 && unicode.ToLower(r) != 'k' &&
				letterOf(r) != letterOf(prev) && (i+1 == len(runes) || letterOf(runes[i+1]) != letterOf(r))
			if alone && !strings.ContainsAny(text, "@#/:.") && rapid.IntRange(0, 9).Draw(t, "draw out") == 0 {
				long.WriteString(strings.Repeat(string(r), rapid.IntRange(2, 5).Draw(t, "by")))
			}
			prev = r
		}
		if long.Len() <= MaxText {
			if drawn := j.Text(long.String()); drawn != v {
				t.Fatalf("%q drawn out to %q: %v, not %v", text, long.String(), drawn, v)
			}
		}
	})
}

func letterOf(r rune) byte {
	if r >= 0 && int(r) < len(latin.fold) {
		return latin.fold[r]
	}
	return 0
}

// The order of a person's texts does not matter, except for rounding.
func TestPersonInAnyOrder(t *testing.T) {
	j := open(t)
	rapid.Check(t, func(t *rapid.T) {
		var texts []string
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(golden)-1), 0, 30).Draw(t, "texts") {
			texts = append(texts, golden[i].text)
		}
		a, b := j.Person(), j.Person()
		for _, x := range texts {
			a.Add(x)
		}
		for _, i := range rapid.Permutation(texts).Draw(t, "order") {
			b.Add(i)
		}
		v, w := a.Verdict(), b.Verdict()
		if v.Lang != w.Lang || math.Abs(v.Confidence-w.Confidence) > 1e-6 || len(v.Shares) != len(w.Shares) {
			t.Fatalf("%+v in one order, %+v in another", v, w)
		}
		sum := 0.0
		for _, s := range v.Shares {
			sum += s.Share
		}
		if !(v.Confidence >= 0 && v.Confidence <= 1) || sum > 1+1e-9 || v.Lang != Und && sum < 1-7*MinShare {
			t.Fatalf("%+v", v)
		}
	})
}

func TestPerson(t *testing.T) {
	j := open(t)
	add := func(p *Person, l Lang, n int) {
		for i := 0; n > 0; i++ {
			if g := golden[i%len(golden)]; g.want == l {
				p.Add(g.text)
				n--
			}
		}
	}
	for _, c := range []struct {
		name  string
		texts map[Lang]int
		want  Lang
		share map[Lang]float64
	}{
		{"one language", map[Lang]int{PtPT: 6}, PtPT, map[Lang]float64{PtPT: 1}},
		{"Brazilian", map[Lang]int{PtBR: 6}, PtBR, map[Lang]float64{PtBR: 1}},
		{"mostly English, the rest tells", map[Lang]int{PtPT: 3, En: 7}, PtPT, map[Lang]float64{PtPT: 0.3, En: 0.7}},
		{"a word of Portuguese", map[Lang]int{PtPT: 1, En: 19}, En, map[Lang]float64{En: 0.95, PtPT: 0.05}},
		{"Galician and Spanish", map[Lang]int{Gl: 6, Es: 2}, Gl, map[Lang]float64{Gl: 0.75, Es: 0.25}},
		{"nothing", map[Lang]int{Und: 5}, Und, nil},
	} {
		p := j.Person()
		for l, n := range c.texts {
			add(p, l, n)
		}
		v := p.Verdict()
		if v.Lang != c.want || len(v.Shares) != len(c.share) {
			t.Errorf("%s: %+v, want %v", c.name, v, c.want)
			continue
		}
		for _, s := range v.Shares {
			if math.Abs(s.Share-c.share[s.Lang]) > 0.05 {
				t.Errorf("%s: %v has a share of %.2f, want %.2f", c.name, s.Lang, s.Share, c.share[s.Lang])
			}
		}
	}
	p := j.Person()
	add(p, PtPT, MaxTexts+10)
	if v := p.Verdict(); v.Texts != MaxTexts+10 || v.Judged != MaxTexts {
		t.Errorf("%d of %d texts judged, want %d", v.Judged, v.Texts, MaxTexts)
	}
}

func TestWords(t *testing.T) {
	const text = "Não é,\tmuuuito boooom! kkkkkkkk hahahaha liga-me à Ana www.x.test/é @rui #tbt 12 para-choques"
	want := strings.Fields("nao e muito bom kkk haha liga -me a ana para -choques")
	if got := slices.Collect(Words(text)); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for w := range Words(text) { // the caller may stop
		if w != "nao" {
			t.Errorf("%q comes first", w)
		}
		break
	}
}

func TestNoAllocation(t *testing.T) {
	j := open(t)
	text := strings.Repeat(golden[0].text+". ", 3)
	if n := testing.AllocsPerRun(100, func() { j.Text(text) }); n != 0 {
		t.Errorf("%v allocations a text", n)
	}
}

// A text of any form is read once: no run of bytes costs more than a few times its length.
func TestLongTextsAreCut(t *testing.T) {
	for _, text := range []string{strings.Repeat("a,b.c/", 1<<18), strings.Repeat("é", 1<<20),
		strings.Repeat("@#", 1<<20), strings.Repeat("-a", 1<<20)} {
		f, _, _ := Features(text, nil)
		if len(f) > 12*MaxText {
			t.Errorf("%d features", len(f))
		}
		if n := len(VarietyFeatures(text, nil)); n > 20*MaxText {
			t.Errorf("%d features of varieties", n)
		}
	}
}

// remembered fails if the cached words of a text give another result than a lookup of all its
// features one by one.
func remembered(t interface{ Fatalf(string, ...any) }, j *Judge, text string) {
	var a sums
	features, _, foreign := Features(text, nil)
	for _, h := range features {
		a.add(j.t.sum([]uint64{h}))
	}
	if logits, n, ok := j.score(text); ok && !foreign && (n != int(a.total) || logits != j.logits(&a)) {
		t.Fatalf("%q: %d features come to %v, one by one %d to %v", text, n, logits, a.total, j.logits(&a))
	}
	sum := int64(0)
	features = VarietyFeatures(text, nil)
	for _, h := range features {
		sum += j.v.sum([]uint64{h})
	}
	if odds, n := j.odds(text); n != len(features) || odds != j.oddsOf(sum, int64(n)) {
		t.Fatalf("%q: %d features come to odds of %d, one by one %d to %d", text, n, odds, len(features),
			j.oddsOf(sum, int64(len(features))))
	}
}

// The verdict on a text does not depend on earlier texts.
func TestWordsAreRemembered(t *testing.T) {
	j := open(t)
	var all strings.Builder
	for range 3 {
		for _, g := range golden {
			remembered(t, j, g.text)
			all.WriteString(g.text + " ")
		}
	}
	for n := maxKept - 1; n <= maxKept+1; n++ {
		word := strings.Repeat("inconstitucionalissimamente", 2)[:n]
		remembered(t, j, strings.Repeat(word+" de "+word+"s ", 3))
		remembered(t, j, strings.Repeat(word+"s ", 3))
	}
	remembered(t, j, all.String())
	remembered(t, j, "")
}

func FuzzText(f *testing.F) {
	for _, g := range golden {
		f.Add([]byte(g.text))
	}
	f.Add([]byte("\xff\xfe a\u0303o -\xc3 x@y.z http:// 'l’ kkkkk"))
	j := open(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		sound(t, j.Text(string(b)))
		remembered(t, j, string(b))
		p := j.Person()
		p.Add(string(b))
		if v := p.Verdict(); !(v.Confidence >= 0 && v.Confidence <= 1) {
			t.Fatalf("%+v", v)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(Encode(Params{Bits: 2, VarietyBits: 3}, NewTable(2), NewVarieties(3)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if j, err := Parse(b); err == nil {
			sound(t, j.Text("um texto qualquer"))
		}
	})
}

func BenchmarkText(b *testing.B) {
	j := open(b)
	n := 0
	for _, g := range golden {
		n += len(g.text)
	}
	b.SetBytes(int64(n / len(golden)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		j.Text(golden[i%len(golden)].text)
	}
}
