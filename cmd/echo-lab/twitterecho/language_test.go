package twitterecho

import (
	"errors"
	"testing"

	"github.com/echo-node/echo-node/crawler/judge/lang"
)

const letters = "aeosrindtmuclpvgqbfhjxzkyw"

// Our own sentences; none of them is in the data.
func sentences() map[lang.Lang][]string {
	return map[lang.Lang][]string{
		lang.PtPT: {
			"Malta, o comboio está atrasado outra vez, vou ter convosco ao café daqui a bocado",
			"epá estou farto disto, tenho de arranjar outro telemóvel",
			"a tua irmã ligou-me ontem à noite, diz que não vem ao jantar",
			"estou a ver se consigo falar contigo antes de ires para a praia",
			"A equipa marcou dois golos e o guarda-redes esteve muito bem",
			"O utilizador tem de guardar o ficheiro antes de desligar o ecrã",
		},
		lang.PtBR: {
			"Galera, o trem atrasou de novo, a gente se vê no bar daqui a pouco, beleza?",
			"vc viu o jogo ontem? kkkkk que time horrível",
			"sua irmã me ligou ontem de noite, disse que não vem pro jantar",
			"tô tentando falar com você antes de você ir pra praia",
			"O usuário precisa salvar o arquivo antes de desligar a tela",
			"me manda uma mensagem quando você chegar em casa, tá bom?",
		},
		lang.En: {
			"The train is late again, see you at the bar in a while",
			"can't believe they lost that game, what a mess",
		},
	}
}

func TestMeasure(t *testing.T) {
	if e := Measure(letters, "kkkk você tá falando do ônibus"); e.Brazil < 600 {
		t.Errorf("evidence of Brazil %d, want 4 of 6 words or more", e.Brazil)
	}
	if e := Measure(letters, "o segundo mundo quando"); e.Brazil != 0 {
		t.Errorf("what only looks like a gerund counts: %d", e.Brazil)
	}
	// only the two first letters, in their order: 24 are missing and cost 24 down to 1
	if e := Measure(letters, "aa aae"); e.Distance != 24*25/2 {
		t.Errorf("distance %d, want %d", e.Distance, 24*25/2)
	}
	if e := Measure("", "aa"); e != (Evidence{}) {
		t.Errorf("without a profile %+v", e)
	}
}

func TestLanguage(t *testing.T) {
	p := Params{Profile: letters, Far: 60, Brazil: 40}
	texts := sentences()
	for l, want := range map[lang.Lang]lang.Lang{lang.PtBR: lang.PtBR, lang.PtPT: lang.PtPT, lang.En: lang.Other} {
		if got := p.Language(texts[l]...); got != want {
			t.Errorf("%v of texts in %v: %+v", got, l, Measure(letters, texts[l]...))
		}
	}
}

// The parameters are those that came with the weights when the product still contained them. A
// new training changes them.
func TestFitted(t *testing.T) {
	p, err := Fitted()
	if want := (Params{"aeorsidtncmulpfvgbhqxzjkwy", 48, 17}); err != nil || p != want {
		t.Errorf("%+v, %v, want %+v", p, err, want)
	}
	if got := p.Encode(); string(got) != string(fitted) {
		t.Errorf("written again they are %s", got)
	}
	twice := `{"profile":"` + letters[:25] + `a"}`
	for _, bad := range []string{"", "{}", `{"profile":"abc"}`, twice, `{"farther":1}`} {
		if _, err := ParseParams([]byte(bad)); !errors.Is(err, ErrParams) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
