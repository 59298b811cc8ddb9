package storytest

import (
	"math/rand/v2"
	"strings"
	"time"
)

// tongue is one language of the people.
type tongue struct {
	lang, bio, placeField      string
	names, places, words, tags []string
}

func tongues() []tongue {
	f := strings.Fields
	return []tongue{
		{"pt", "Gosto de comboios e de café. Vivo entre", "Localização",
			f("Inês João Conceição Tomás Graça Simão Luísa Gonçalo Rui Fátima"),
			f("Braga Évora Coimbra Aveiro Faro Setúbal"),
			f("hoje o comboio para a cidade chegou tarde mas ninguém se queixou porque havia café e bolos na estação antiga"), f("portugal comboios café lisboa fotografia")},
		{"es", "Leo mucho y escribo poco. Vivo entre", "Ubicación",
			f("Lucía Álvaro Pilar Íñigo Rocío Andrés Nuria Joaquín Begoña Martín"),
			f("Cádiz Zamora Jaén León Soria Gijón"),
			f("esta mañana la feria abrió pronto y los vecinos compraron queso aunque llovía mucho sobre la plaza vieja"), f("españa feria libros cine fotografía")},
		{"en", "I mend old radios. Living between", "Location",
			f("Harriet Owen Maeve Edmund Isla Walter Nora Callum Beatrice Ralph"),
			f("Whitby Ludlow Hexham Oban Tenby Rye"),
			f("this morning the ferry left early and nobody minded because the bakery by the harbour had fresh bread again"), f("ferry radio books photography news")},
	}
}

// sentence returns some random words.
func (t tongue) sentence(rng *rand.Rand) string {
	out := make([]string, 4+rng.IntN(20))
	for i := range out {
		out[i] = t.words[rng.IntN(len(t.words))]
	}
	return strings.Join(out, " ")
}

// ascii returns a name in a form that is valid in an account name.
func ascii(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 {
			return r
		}
		return 'x'
	}, strings.ToLower(s))
}

// compose adds a version to p. Its text is said, followed by the mentions, tags and links.
func (w *Story) compose(p *Post, at time.Time, said string) {
	text := []string{said}
	if len(p.Versions) == 0 { // in an edit, said is the whole text
		for _, m := range p.Mentions {
			text = append(text, "@"+m.User)
		}
		for _, t := range p.Tags {
			text = append(text, "#"+t)
		}
		text = append(text, p.Links...)
	}
	p.Versions = append(p.Versions, Version{at, said, strings.Join(text, " ")})
}
