package twitterecho

import (
	"errors"
	"slices"
	"testing"

	"github.com/echo-node/echo-node/crawler/judge/community"
)

func fromPortugal() []string {
	return []string{"Bora lá, malta, o autocarro está atrasado outra vez",
		"Estou a preparar o jantar e a ouvir rádio", "Que fixe, o miúdo já está a dormir",
		"Perdi o comboio, agora só daqui a meia hora",
		"Tenho de ir às finanças tratar do cartão de cidadão", "Já comeste o pequeno-almoço?",
		"O telemóvel avariou-se outra vez", "Não percebo porque é que ninguém me atende",
		"Apanhei uma molha do caraças", "Hei de lá ir um dia destes, dizem que se come bem"}
}

func fromBrazil() []string {
	return []string{"Galera, o ônibus atrasou de novo kkkk", "Tô preparando a janta e ouvindo música",
		"Que legal, o menino já tá dormindo", "Perdi o trem, agora só daqui meia hora",
		"Preciso ir no cartório resolver meu CPF", "Você já tomou café da manhã?",
		"Meu celular quebrou de novo", "Não tô entendendo por que ninguém atende",
		"A gente tá pensando em se mudar", "Vou pegar as crianças na escola e já volto"}
}

func TestJudge(t *testing.T) {
	j, err := Open("portugal")
	if err != nil {
		t.Fatal(err)
	}
	many := func(texts []string) []string { return slices.Repeat(texts, 4) }
	for name, tt := range map[string]struct {
		p     community.Profile
		texts []string
		want  string
	}{
		"nothing": {want: community.IsUndecided},
		"place":   {p: community.Profile{Location: "algures em Braga"}, want: community.IsIn},
		"place, and a foreign name": {p: community.Profile{Location: "Braga", Name: "Wellington"},
			want: community.IsUndecided},
		"elsewhere":       {p: community.Profile{Location: "Curitiba"}, want: community.IsOut},
		"zone":            {p: community.Profile{TimeZone: "America/Bahia"}, want: community.IsOut},
		"few texts":       {texts: fromPortugal(), want: community.IsUndecided},
		"Brazilian texts": {texts: many(fromBrazil()), want: community.IsOut},
		// the errors that the dissertation names
		"a Brazilian there is taken": {p: community.Profile{Location: "Lisboa"}, texts: many(fromBrazil()),
			want: community.IsIn},
	} {
		if got := j.Judge(tt.p, tt.texts); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestOpen(t *testing.T) {
	for _, name := range community.EmbeddedNames() {
		if j, err := Open(name); err != nil || len(j.inside) < 20 || len(j.outside) < 40 || len(j.foreign) < 20 {
			t.Errorf("%s: %+v, %v", name, j, err)
		}
	}
	if _, err := Open("nowhere"); !errors.Is(err, community.ErrCommunity) {
		t.Error(err)
	}
}

func TestFold(t *testing.T) {
	for in, want := range map[string]string{
		"": "  ", "É o Gonçalo!": " e o goncalo ", "x-y": " x y ", "Vila  Real🇵🇹": " vila real ",
	} {
		if got := fold(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
