package community

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func judge(t testing.TB, c Community) *Judge {
	t.Helper()
	j, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func community(t testing.TB, name string) Community {
	t.Helper()
	c, err := Embedded(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func european() []string {
	return []string{"Bora lá, malta, o autocarro está atrasado outra vez", "Estou a preparar o jantar e a ouvir rádio",
		"Que fixe, o miúdo já está a dormir",
		"Perdi o comboio, agora só daqui a meia hora", "Tenho de ir às finanças tratar do cartão de cidadão",
		"Já comeste o pequeno-almoço?", "O telemóvel avariou-se outra vez",
		"Não percebo porque é que ninguém me atende", "Apanhei uma molha do caraças",
		"Hei de lá ir um dia destes, dizem que se come bem"}
}

func brazilian() []string {
	return []string{"Galera, o ônibus atrasou de novo kkkk", "Tô preparando a janta e ouvindo música",
		"Que legal, o menino já tá dormindo", "Perdi o trem, agora só daqui meia hora",
		"Preciso ir no cartório resolver meu CPF", "Você já tomou café da manhã?", "Meu celular quebrou de novo",
		"Não tô entendendo por que ninguém atende", "A gente tá pensando em se mudar",
		"Vou pegar as crianças na escola e já volto"}
}

func TestJudge(t *testing.T) {
	pt := community(t, "portugal")
	pt.Seeds, pt.Exclusions = []string{"seed"}, []string{"not"}
	j := judge(t, pt)
	mirror := judge(t, community(t, "brazil"))
	for name, tt := range map[string]struct {
		p      Profile
		texts  []string
		e      Edges
		want   string
		mirror string // the verdict of the other country's community
	}{
		"nothing": {want: IsUndecided, mirror: IsUndecided},
		"a seed": {p: Profile{ID: "seed", Location: "Recife"}, want: IsIn,
			mirror: IsUndecided},
		"an exclusion": {p: Profile{ID: "not", Location: "Lisboa"}, texts: european(),
			want: IsOut, mirror: IsOut},
		"at home": {p: Profile{Location: "Braga", TimeZone: "Europe/Lisbon"},
			texts: european(), want: IsIn, mirror: IsOut},
		"a Brazilian in Lisbon": {p: Profile{Location: "Lisboa", TimeZone: "Europe/Lisbon",
			Lang: "pt-BR"}, texts: brazilian(), want: IsOut, mirror: IsIn},
		"a Brazilian in Lisbon, unheard": {p: Profile{Location: "Lisboa", TimeZone: "Europe/Lisbon", Bio: "🇧🇷"},
			want: IsUndecided, mirror: IsUndecided},
		"a Portuguese in London": {p: Profile{Location: "London", TimeZone: "Europe/London",
			Lang: "pt-PT"}, texts: european(), want: IsIn, mirror: IsOut},
		"born there": {p: Profile{Bio: "Natural de Viseu, a viver em Londres",
			Name: "Mafalda"}, want: IsIn, mirror: IsOut},
		"declared origin": {p: Profile{Fields: []Field{{"Naturalidade", "Covilhã"}},
			Name: "Gonçalo Matos"}, want: IsIn, mirror: IsOut},
		"a machine that says so": {p: Profile{Location: "Porto", TimeZone: "Europe/Lisbon", Bot: true,
			Name: "Nuno"}, want: IsOut, mirror: IsOut},
		"a machine that does not": {p: Profile{Location: "Porto"}, texts: weather(), want: IsOut,
			mirror: IsOut},
		"friends alone, most of them in": {e: Edges{Follows: Counts{40, 3}, Followers: Counts{30, 2}},
			want: IsIn, mirror: IsIn},
		"friends alone, half of them in": {e: Edges{Follows: Counts{20, 14}}, want: IsUndecided,
			mirror: IsUndecided},
		"friends alone, hardly any in": {e: Edges{Follows: Counts{2, 40}}, want: IsOut, mirror: IsOut},
		"friends of each kind, two of three in": {e: Edges{Follows: Counts{26, 11}, Followers: Counts{16, 8},
			Mentions: Counts{8, 2}}, want: IsIn, mirror: IsIn},
		"follows few, followed by many": {e: Edges{Follows: Counts{1, 12}, Followers: Counts{30, 6}},
			want: IsUndecided, mirror: IsUndecided},
		"counts that nobody can have": {e: Edges{Follows: Counts{-5, -9}}, want: IsUndecided,
			mirror: IsUndecided},
		"an English speaker in the north": {p: Profile{Location: "Leeds", TimeZone: "Europe/London"},
			texts: []string{"Getting ready for the match, see you tomorrow everyone",
				"The bus was late again, waiting in the rain", "Does anyone know a good place for breakfast around here?"},
			want: IsOut, mirror: IsOut},
	} {
		v := j.Judge(tt.p, tt.texts, tt.e)
		if v.Verdict != tt.want || (v.Verdict == IsUndecided) != (len(v.Ask) > 0) || v.Score < 0 || v.Score > 1 ||
			v.Evidence == nil {
			t.Errorf("%s: %+v, want %s", name, v, tt.want)
		}
		if v := mirror.Judge(tt.p, tt.texts, tt.e); v.Verdict != tt.mirror {
			t.Errorf("%s, to the other country: %+v, want %s", name, v, tt.mirror)
		}
		if again := j.Judge(tt.p, tt.texts, tt.e); !cmp.Equal(v, again) {
			t.Errorf("%s: judged twice, %v and %v", name, v, again)
		}
	}
}

func weather() (out []string) {
	for _, n := range []string{"12", "13", "11", "9", "17", "21", "20", "19", "8", "7"} {
		out = append(out, "Temperatura no Porto às "+n+" horas: "+n+" graus, vento fraco")
	}
	return out
}

// The first Ask is the one that more likely decides. The more is known, the less an Ask is worth.
func TestAsk(t *testing.T) {
	j := judge(t, community(t, "portugal"))
	value := func(v Verdict, what string) float64 {
		for _, a := range v.Ask {
			if a.What == what {
				return a.Value
			}
		}
		return 0
	}
	none := j.Judge(Profile{}, nil, Edges{})
	near := j.Judge(Profile{Location: "Braga"}, nil, Edges{})
	asked := j.Judge(Profile{}, nil, Edges{Follows: Counts{12, 8}})
	if value(none, AskTexts) <= value(none, AskNeighbours) || value(near, AskTexts) <= value(none, AskTexts) ||
		value(asked, AskNeighbours) != 0 {
		t.Errorf("none %v, near %v, asked %v", none.Ask, near.Ask, asked.Ask)
	}
	order := Order(map[string]Verdict{"b": none, "a": none, "c": near, "d": {Verdict: IsIn}})
	if len(order) != 6 || order[0].ID != "c" || order[1].ID != "a" && order[1].ID != "c" {
		t.Errorf("%+v", order)
	}
	for i := range order[1:] {
		if order[i].Value < order[i+1].Value || math.IsNaN(order[i].Value) {
			t.Errorf("out of order: %+v", order)
		}
	}
}

func TestOverrides(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var o Overrides
	for _, bad := range []Override{{Verdict: IsIn, By: "ana"}, {ID: "x", Verdict: IsIn},
		{ID: "x", Verdict: "perhaps", By: "ana"}} {
		if err := o.Add(bad); !errors.Is(err, ErrOverride) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	log := []Override{{"a", IsOut, "ana", "lives there", at}, {"b", IsOut, "ana", "", at},
		{"a", IsIn, "rui", "born here", at.Add(time.Hour)}, {"b", "", "ana", "", at}, {"c", IsOut, "rui", "", at},
		{"d", IsIn, "rui", "", at}}
	for _, x := range log {
		if err := o.Add(x); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(log, o.Log()); d != "" {
		t.Error(d)
	}
	in := Verdict{IsIn, 0.97, []Evidence{{"place", "Braga", 1.8}, {"name", "John", -0.8}}, nil}
	out := Verdict{IsOut, 0.01, []Evidence{{"language", "pt-BR", -4}}, nil}
	undecided := Verdict{IsUndecided, 0.5, []Evidence{}, []Ask{{AskTexts, 0.4}}}
	if v := o.Apply("a", out); v.Verdict != IsIn || v.Score != 1 || v.Evidence[0].Kind != "override" ||
		!strings.Contains(v.Evidence[0].Text, "rui") || len(v.Evidence) != 2 {
		t.Errorf("%+v", v)
	}
	if v := o.Apply("b", out); !cmp.Equal(v, out) {
		t.Errorf("taken back: %+v", v)
	}
	if v := o.Apply("c", undecided); v.Verdict != IsOut || v.Score != 0 || v.Ask != nil {
		t.Errorf("%+v", v)
	}
	want := Report{Overrides: 3, Agreed: 1, Undecided: 1, Mistakes: []Mistake{{log[4], in}},
		Kinds: map[string]float64{"place": 1.8}}
	if d := cmp.Diff(want, o.Mistakes(map[string]Verdict{"a": in, "b": out, "c": in, "d": undecided})); d != "" {
		t.Error(d)
	}
	if _, err := ReadOverrides(strings.NewReader("{\"id\":\"a\",\"verdict\":\"in\",\"by\":\"ana\"}\n\n{")); !errors.Is(err, ErrOverride) || !strings.Contains(err.Error(), "line 3") {
		t.Error(err)
	}
}

func TestParse(t *testing.T) {
	if d := cmp.Diff([]string{"brazil", "portugal"}, EmbeddedNames()); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"", "{}", `{"v":2,"name":"x","countries":["PT"]}`, `{"v":1,"countries":["PT"]}`,
		`{"v":1,"name":"x"}`, `{"v":1,"name":"x","countries":["pt"]}`,
		`{"v":1,"name":"x","countries":["PT"],"citys":["Lisboa"]}`} {
		if _, err := Parse([]byte(bad)); !errors.Is(err, ErrCommunity) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := Embedded("../doc"); !errors.Is(err, ErrCommunity) {
		t.Error(err)
	}
	const lists = `"places":["Lisboa"],"not_places":["Recife"],"seeds":["a"]`
	older, err := Parse([]byte(`{"v":1,"name":"x","countries":["PT"],` + lists + `}`))
	if err != nil || older.Name != "x" || len(older.Seeds) != 1 {
		t.Errorf("an older file, with lists of places: %+v, %v", older, err)
	}
}

func TestFold(t *testing.T) {
	for in, want := range map[string]string{"": "  ", "É o Gonçalo!": " e o goncalo ", "a🇵🇹b": " a 🇵🇹 b ",
		"🇵🇹🇧🇷": " 🇵🇹 🇧🇷 ", "🇵": " ", "x-y": " x y "} {
		if got := fold(in); strings.TrimSpace(got) != strings.TrimSpace(want) || !strings.HasPrefix(got, " ") ||
			!strings.HasSuffix(got, " ") {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// Any data of a service: no panic, a valid score, and the same verdict twice.
func FuzzJudge(f *testing.F) {
	j := judge(f, community(f, "portugal"))
	f.Add("Ana", "natural de Viseu", "Lisboa", "Europe/Lisbon", "pt-PT", "http://x.pt", "Bora lá #slbenfica", 3, 1)
	f.Add("\xff🇵", "natural de", "→", "?", "-", "://", strings.Repeat("#", 50), -1, math.MaxInt)
	f.Fuzz(func(t *testing.T, name, bio, location, zone, tag, link, text string, in, out int) {
		p := Profile{Name: name, Bio: bio, Location: location, TimeZone: zone, Lang: tag, URL: link,
			Fields: []Field{{"Naturalidade", bio}}}
		v := j.Judge(p, []string{text, text, text}, Edges{Follows: Counts{in, out}})
		if math.IsNaN(v.Score) || v.Score < 0 || v.Score > 1 {
			t.Fatalf("%+v", v)
		}
		if !cmp.Equal(v, j.Judge(p, []string{text, text, text}, Edges{Follows: Counts{in, out}})) {
			t.Fatal("two verdicts")
		}
	})
}

func BenchmarkJudge(b *testing.B) {
	j := judge(b, community(b, "portugal"))
	p := Profile{Name: "Ana Matos", Bio: "natural de Viseu, a viver em Londres", Location: "London",
		TimeZone: "Europe/London"}
	for _, n := range []int{0, 10} {
		b.Run(map[int]string{0: "profile", 10: "with 10 texts"}[n], func(b *testing.B) {
			for b.Loop() {
				j.Judge(p, european()[:n], Edges{Follows: Counts{20, 10}})
			}
		})
	}
}
