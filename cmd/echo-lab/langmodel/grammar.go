package langmodel

import (
	_ "embed" // the hand-written list
	"math/rand/v2"
	"strings"

	"github.com/echo-node/echo-node/crawler/judge/lang"
)

//go:embed informal.txt
var informal string

// grammar makes informal sentences of either variety with the same verbs and nouns, so that
// only the form distinguishes them. It also makes written sentences informal.
type grammar struct {
	phrases [2][]string // said to each other
	public  [2][]string // written in public, or told
	fill    map[string][]string
	verbs   []string
	short   [2][][2]string
}

// newGrammar reads the embedded list: each line is "kind: item | item".
func newGrammar() *grammar {
	g := &grammar{fill: map[string][]string{}}
	for line := range strings.Lines(informal) {
		kind, rest, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		items := strings.Split(rest, " | ")
		for _, item := range items {
			long, abbr, _ := strings.Cut(item, "=")
			switch kind {
			case "phrase pt-PT":
				g.phrases[0] = append(g.phrases[0], item)
			case "phrase pt-BR":
				g.phrases[1] = append(g.phrases[1], item)
			case "public pt-PT":
				g.public[0] = append(g.public[0], item)
			case "public pt-BR":
				g.public[1] = append(g.public[1], item)
			case "noun", "subject", "object", "his", "her":
				g.fill[kind] = append(g.fill[kind], item)
			case "verb":
				g.verbs = append(g.verbs, strings.TrimSuffix(item, "ar"))
			case "short pt-PT", "short":
				g.short[0] = append(g.short[0], [2]string{long, abbr})
			}
			if kind == "short pt-BR" || kind == "short" {
				g.short[1] = append(g.short[1], [2]string{long, abbr})
			}
		}
	}
	return g
}

// The patterns: V is the stem of a verb in -ar, N a noun phrase, S a subject, O an object, X
// and Y what somebody has.
const (
	patternsPT = "estou a Var N|tou a Var N|estás a Var N?|tás a Var N?|ando a Var N|tava a Var N|estava a Var|ele tá a Var N|ela está a Var N|estão a Var N|anda a Var N|vais Var N?|Vas N?|tu Vas N|já Vaste N?|Vaste N?|não Vaste N|porque é que Vaste N?|diz-me se Vas N|tens de Var N|tenho de Var N|temos de Var N|tem de Var|apetece-me Var N|não me apetece Var N|queres Var N?|queres vir Var N?|podes Var N?|podias Var N|sabes Var N?|deixa-me Var N|deixaste-me Var|Vou-me N|Vei-te N|Vou-lhe N|Vei-o N|Vam-me N|Va-me N|Va-te N|não Ves N|não te Ves|nunca me Vaste|acho que me Vei|se eu Vasse N|gostava de Var N|vou Var N contigo|vais-te Var|hás de Var N|hei de Var N|havia de Var N|era para Var N|ao Var N|foste Var N?|foste tu que Vaste?|o meu pai Vou N|a minha mãe Vou-me N|o teu irmão Va N|quero-te Var|vou-te Var N|isto é para Var N|e se Vássemos N?|já me Vaste N|então Vas N ou não?|depois Vo-te N|logo Vo-te N|Vas comigo N?"
	patternsBR = "estou Vando N|tô Vando N|to Vando N|cê tá Vando N?|vc tá Vando N?|você está Vando N?|vivo Vando N|tava Vando N|estava Vando|ele tá Vando N|ela está Vando N|estão Vando N|fica Vando N|você vai Var N?|vc Va N?|você Va N|já Vou N?|você Vou N?|você não Vou N|por que você Vou N?|me diz se você Va N|tem que Var N|tenho que Var N|temos que Var N|tem que Var|tô com vontade de Var N|não tô afim de Var N|quer Var N?|quer vir Var N?|pode Var N?|podia Var N|sabe Var N?|me deixa Var N|me deixou Var|me Vou N|te Vei N|Vou ele N|Vei ele N|me Vam N|me Va N|te Va N|não Va N|não se Va|nunca me Vou|acho que me Vei|se eu Vasse N|queria Var N|vou Var N com você|você vai se Var|vai Var N|vou Var N|devia Var N|era pra Var N|Vando N|foi Var N?|foi você que Vou?|meu pai Vou N|minha mãe me Vou N|seu irmão Va N|quero te Var|vou te Var N|isso é pra Var N|e se a gente Vasse N?|você já me Vou N|então vc Va N ou não?|depois te Vo N|já te Vo N|a gente Va N|a gente tá Vando N|bora Var N|Va comigo N?|vamo Var N"
	toldPT     = "S está a Var O|S estava a Var O|S continua a Var O|S tem vindo a Var O|S Vou-se O|S Vou-lhe O|S Vou-o O|S Va-se|S Vava-se O|S acabou por Var O|S anda a Var O|S tem de Var O|S terá de Var O|S ficou a Var O|S vê-se obrigado a Var O|ao Var O, S Vou-se|pode Var-se O|o seu X Vou O|a sua Y Va O|S Vou o seu X|S Vava a sua Y|S falou do seu X e da sua Y|S disse-lhe para Var O|S pediu-nos para Var|há que Var O|é preciso que Ves O|vais Var O|Va-me O|não Ves O|quando Vares O|se Vares O|para Vares O|Vai O|Vámos O|Vara-se O|estão a Var-nos|S está a Var-te"
	toldBR     = "S está Vando O|S estava Vando O|S continua Vando O|S vem Vando O|S se Vou O|S lhe Vou O|S o Vou O|S se Va|S se Vava O|S acabou Vando O|S anda Vando O|S tem que Var O|S terá que Var O|S ficou Vando O|S se vê obrigado a Var O|Vando O, S se Vou|pode se Var O|seu X Vou O|sua Y Va O|S Vou seu X|S Vava sua Y|S falou de seu X e de sua Y|S disse para ele Var O|S nos pediu para Var|é preciso Var O|é preciso que você Ve O|você vai Var O|me Ve O|não Ve O|quando você Var O|se você Var O|para você Var O|Vem O|Vamos O|se Vara O|estão nos Vando|S está te Vando"
)

// sentence returns one sentence, half of the time as people talk, half of the time as they
// tell.
func (g *grammar) sentence(variety int, r *rand.Rand) string {
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	phrases, patterns := g.phrases[variety], []string{patternsPT, patternsBR}[variety]
	if r.IntN(2) == 0 {
		phrases, patterns = g.public[variety], []string{toldPT, toldBR}[variety]
	}
	var parts []string
	if r.IntN(3) == 0 {
		parts = append(parts, pick(phrases))
	}
	if r.IntN(4) > 0 {
		p := pick(strings.Split(patterns, "|"))
		stem := pick(g.verbs)
		p = strings.ReplaceAll(p, "Ve", soft(stem)+"e")
		p = strings.ReplaceAll(p, "V", stem)
		for _, kind := range [][2]string{{"N", "noun"}, {"S", "subject"}, {"O", "object"}, {"X", "his"}, {"Y", "her"}} {
			p = strings.ReplaceAll(p, kind[0], pick(g.fill[kind[1]]))
		}
		parts = append(parts, p)
	}
	for len(parts) == 0 || r.IntN(3) == 0 {
		parts = append(parts, pick(phrases))
	}
	return strings.Join(parts, []string{" ", ", ", "! ", ". ", "... "}[r.IntN(5)])
}

// soft returns a stem before e: fiquei, liguei, comecei.
func soft(stem string) string {
	switch {
	case strings.HasSuffix(stem, "ç"):
		return strings.TrimSuffix(stem, "ç") + "c"
	case strings.HasSuffix(stem, "c"):
		return strings.TrimSuffix(stem, "c") + "qu"
	case strings.HasSuffix(stem, "g"):
		return stem + "u"
	}
	return stem
}

// casual rewrites a sentence like a message: with abbreviations, and a phrase before or after
// it.
func (g *grammar) casual(variety int, text string, r *rand.Rand) string {
	text = " " + strings.ToLower(text) + " "
	for _, s := range g.short[variety] {
		if r.IntN(3) == 0 {
			text = strings.ReplaceAll(text, " "+s[0]+" ", " "+s[1]+" ")
		}
	}
	text = strings.TrimSpace(text)
	switch r.IntN(4) {
	case 0:
		text = g.phrases[variety][r.IntN(len(g.phrases[variety]))] + " " + text
	case 1:
		text += " " + g.phrases[variety][r.IntN(len(g.phrases[variety]))]
	}
	return text
}

// stripAccents returns the letters without their marks.
func stripAccents(text string) string {
	return strings.NewReplacer("á", "a", "à", "a", "â", "a", "ã", "a", "ä", "a", "é", "e", "è", "e", "ê", "e", "ë", "e",
		"í", "i", "ì", "i", "î", "i", "ï", "i",
		"ó", "o", "ò", "o", "ô", "o", "õ", "o", "ö", "o", "ú", "u", "ù", "u", "û", "u", "ü", "u", "ç", "c", "ñ", "n",
		"Á", "A", "À", "A", "Â", "A", "Ã", "A", "É", "E", "È", "E", "Ê", "E", "Í", "I", "Ó", "O", "Ô", "O", "Õ", "O",
		"Ö", "O", "Ú", "U", "Ü", "U", "Ç", "C", "Ñ", "N",
		"ă", "a", "ș", "s", "ț", "t", "ş", "s", "ţ", "t", "ğ", "g", "ı", "i", "ł", "l", "ś", "s", "š", "s", "ž", "z",
		"č", "c", "ř", "r", "ě", "e", "ů", "u", "å", "a", "ø", "o", "ą", "a", "ę", "e", "ń", "n", "ż", "z", "ý",
		"y").Replace(text)
}

// window returns a few words in a row.
func window(text string, r *rand.Rand) string {
	words := strings.Fields(text)
	n := 3 + r.IntN(9)
	if n >= len(words) {
		return text
	}
	at := r.IntN(len(words) - n + 1)
	return strings.Join(words[at:at+n], " ")
}

// vary returns a text as training sees it this time.
func (g *grammar) vary(s Sample, r *rand.Rand) string {
	text := s.Text
	if r.IntN(10) < 3 {
		text = window(text, r)
	}
	if variety := int(s.Lang); s.Lang <= lang.PtBR && r.IntN(10) < 3 {
		text = g.casual(variety, text, r)
	}
	if r.IntN(10) < 4 {
		text = stripAccents(text)
	}
	return text
}
