package geo

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Short forms and mistakes, and everyday words that are similar to a name.
func TestShortForms(t *testing.T) {
	g := open(t)
	for in, want := range map[string]string{
		"T. Vedras": "torres vedras", "t vedras": "torres vedras", "Ponte Lima": "ponte de lima",
		"Marinha Gde": "marinha grande", "Macedo de Cav.": "macedo de cavaleiros",
		"C. Branco": "castelo branco", "S. J. Madeira": "sao joao da madeira",
		"St. Maria da Feira": "santa maria da feira", "caldasdarainha": "caldas da rainha",
		"Lisbao": "lisboa", "Lisvoa": "lisboa", "Guimaraens": "guimaraes", "Coimba": "coimbra", "Setubla": "setubal",
		"Matozinhos": "matosinhos",
		"amada":      "", "panela": "", "faros": "", "S. Pedro": "", "Macedo": "", "x": "", "M. G.": "", "norte": "",
		"Norte de Portugal": "",
	} {
		if got := g.short().find(wordsOf(in)); got != want {
			t.Errorf("%q is short for %q, want %q", in, got, want)
		}
	}
}

// A name found for a mistyped word is one mistake away.
func TestSlip(t *testing.T) {
	names := open(t).short().single
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "name")
		i := rapid.IntRange(1, len(name)-2).Draw(t, "at")
		if swapped := name[:i] + name[i+1:i+2] + name[i:i+1] + name[i+2:]; swapped != name && !slip(swapped, name) {
			t.Fatalf("%q is not seen as %q", swapped, name)
		}
		s := rapid.StringMatching(`[a-z]{1,14}`).Draw(t, "text")
		if slip(s, name) && (s == name || len(s) > len(name)+1 || len(s) < len(name)-1) {
			t.Fatalf("%q is seen as %q", s, name)
		}
	})
}

// A place that the text denies is not where the person is. Words about something else count.
func TestDenied(t *testing.T) {
	g := open(t)
	for text, want := range map[string]string{
		"Espinho não, Gaia": "Porto", "Lisboa não existe": "", "Braga, não a dos EUA": "Braga",
		"Lisboa não é só isto": "Lisbon", "não sou de Lisboa": "", "não em Faro, Tavira": "Faro",
		"Porto e não só": "Porto",
	} {
		got := ""
		if r := g.Resolve(text, Hints{}); r.Place != nil {
			got = r.Place.Admin1
		}
		if got != want {
			t.Errorf("%q is in %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{strings.Repeat("não ", 200), "não", "não não Lisboa não"} {
		checkResolution(t, g, text, Hints{})
	}
}
