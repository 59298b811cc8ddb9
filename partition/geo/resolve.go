package geo

import (
	"slices"
	"strings"
	"unicode"
)

// Hints are what else is known of the text's author. The zero Hints know nothing.
type Hints struct {
	Country  string // ISO code of a likely country, "" unknown
	Language string // BCP 47, "" unknown
	TimeZone string // of the time zone database, "" unknown
}

// Place is a place on earth.
type Place struct {
	Name    string `json:"name"`
	Country string `json:"country"` // ISO 3166-1 alpha-2
	// first division as GeoNames calls it, "" for a country
	Admin1     string  `json:"admin1,omitempty"`
	Admin2     string  `json:"admin2,omitempty"` // second division, Portugal only
	Lat        float64 `json:"lat"`              // degrees
	Lon        float64 `json:"lon"`
	Cell       string  `json:"cell"` // token of the S2 cell of level CellLevel
	Population int     `json:"population,omitempty"`
}

// Candidate is one interpretation of a text.
type Candidate struct {
	Place      Place   `json:"place"`
	Confidence float64 `json:"confidence"` // 0 to 1; the sum for one text is at most 1
}

// Resolution is the place that a text indicates.
type Resolution struct {
	Place      *Place  `json:"place"` // nil: unknown
	Confidence float64 `json:"confidence"`
	// likeliest first, at most MaxCandidates; also when unknown
	Candidates []Candidate `json:"candidates"`
	Evidence   string      `json:"evidence"` // name, coordinates, flag, zone or ""
}

// MaxCandidates is the length of the longest list of candidates.
const MaxCandidates = 5

// MaxNames is how many names of a text, and how many flags, are weighed against each other. The
// cost is each sense of one with each sense of the others. The first ones count.
const MaxNames = 12

// leastConfidence is the confidence at which an interpretation becomes the place: it is more
// likely than all others together.
const leastConfidence = 0.5

// span is a name in the text.
type span struct {
	senses  []sense
	scores  []float64 // of senses, with the support of the other spans
	best    int
	segment int
	role    int  // above 0: lives there; below: comes from there
	words   int  // of the name
	whole   bool // nothing else is in its segment
	flag    bool
}

// sense returns the best sense so far.
func (s *span) sense() sense { return s.senses[s.best] }

// Resolve interprets s. It never fails: what it cannot interpret is unknown.
func (g *Gazetteer) Resolve(s string, hints Hints) Resolution {
	if lat, lon, ok := findCoordinates(s); ok {
		return g.nearest(lat, lon)
	}
	if city, ok := findZone(s); ok {
		return g.zoneCountry(s, city)
	}
	t := split(s)
	spans, unread := g.spans(t)
	if len(spans) == 0 {
		return Resolution{}
	}
	g.score(spans, hints)
	return g.choose(spans, unread, hints)
}

// spans finds the names in a text, longest first, and counts the words without information.
func (g *Gazetteer) spans(t text) (out []span, unread int) {
	unreal := map[string]bool{} // countries with a fictional place in the text
	for i, seg := range t.segments {
		found, rest := g.segmentSpans(seg, i, unreal)
		out = append(out, found...)
		unread += rest
	}
	out = out[:min(len(out), MaxNames)]
	for _, f := range t.flags[:min(len(t.flags), MaxNames)] {
		if s, ok := g.flagSpan(f); ok {
			out = append(out, s)
		}
	}
	if len(unreal) == 0 {
		return out, unread
	}
	for i := range out {
		out[i].senses = slices.DeleteFunc(slices.Clone(out[i].senses),
			func(a sense) bool { return unreal[a.place.Country] })
	}
	return slices.DeleteFunc(out, func(s span) bool { return len(s.senses) == 0 }), unread
}

// flagSpan returns the meaning of a flag. A word or an arrow before it can say that the person
// is there.
func (g *Gazetteer) flagSpan(f flag) (span, bool) {
	s := span{segment: -1, flag: true}
	if area := map[string]string{"gbeng": "england", "gbsct": "scotland", "gbwls": "wales"}[f.code]; area != "" {
		s.senses = g.hand[area]
	} else if n, ok := g.countries[f.code]; ok {
		s.senses = []sense{{place: g.table.Place(n), kind: senseCountry, weight: 8}}
	}
	if n := len(f.before); n > 0 && g.words[f.before[n-1].folded]&(wordLive|wordFrom) != 0 {
		s.role = g.role(f.before)
	}
	if f.moved {
		s.role++
	}
	return s, len(s.senses) > 0
}

// hit is a name found in a segment, from word from up to, not including, word to.
type hit struct {
	from, to int
	senses   []sense
}

// hits finds the names in a segment. It counts the words without information, and among them
// those that are never a name.
func (g *Gazetteer) hits(words []word) (out []hit, unread, noise int) {
	for i := 0; i < len(words); {
		n, senses := g.longest(words[i:], i == 0)
		if n > 0 {
			out = append(out, hit{i, i + n, senses})
			i += n
			continue
		}
		switch kind := g.words[words[i].folded]; {
		case kind&wordNever != 0:
			noise++
		case kind == 0 && len(words[i].folded) > 1 && !digits(words[i].folded):
			unread++
		}
		i++
	}
	return out, unread, noise
}

// segmentSpans returns the names in one segment that people can mean there, and the number of
// words without information. A fictional place adds its country to unreal.
func (g *Gazetteer) segmentSpans(seg segment, number int, unreal map[string]bool) (out []span, unread int) {
	words := seg.words
	hits, unread, noise := g.hits(words)
	for _, h := range hits {
		if g.denied(words[:h.from], words[h.to:]) {
			continue
		}
		role := g.role(words[:h.from])
		if h.to < len(words) {
			role += trailing(words[h.to].folded)
		}
		c := context{words: words[h.from:h.to], whole: h.to-h.from == len(words), unread: unread, noise: noise,
			lives: role >= 3, from: role <= -3, linked: linked(words[h.to:])}
		c.common = len(c.words) == 1 && g.words[c.words[0].folded]&wordCommon != 0
		senses := slices.DeleteFunc(h.senses, func(s sense) bool { return !c.plausible(s) })
		if len(senses) == 0 {
			if len(c.words) > 1 || g.words[c.words[0].folded] == 0 {
				unread++
			}
			continue
		}
		switch senses[0].kind {
		case senseNone:
			continue
		case senseFiction: // what else the text says of that country belongs to the story
			unreal[senses[0].place.Country] = true
			continue
		case senseFolk:
			role--
		}
		if seg.moved {
			role++
		}
		out = append(out, span{senses: senses, segment: number, role: role, words: len(c.words), whole: c.whole})
	}
	return out, unread
}

// longest returns the longest name that begins at the first word. all says that the words are a
// whole segment.
func (g *Gazetteer) longest(words []word, all bool) (int, []sense) {
	const most = 7
	for n := min(most, len(words)); n > 0; n-- {
		if n == 1 && g.words[words[0].folded]&^wordCommon != 0 && len(g.hand[words[0].folded]) == 0 {
			return 0, nil
		}
		senses := g.senses(join(words[:n], func(w word) string { return w.raw }))
		if len(senses) == 0 {
			senses = g.otherwise(words[:n], all && n == len(words))
		}
		if n == 1 && g.words[words[0].folded]&wordNever != 0 {
			senses = slices.DeleteFunc(senses, func(s sense) bool {
				return s.kind != senseWeak && s.kind != senseNone &&
					s.kind != senseFiction
			})
		}
		if len(senses) > 0 {
			return n, senses
		}
	}
	return 0, nil
}

// otherwise interprets a name that is not known in its given form. It treats only a name alone
// between separators as a short form: in a sentence P. Ferreira is a person.
func (g *Gazetteer) otherwise(words []word, whole bool) []sense {
	for _, other := range variants(words) {
		if senses := g.senses(other); len(senses) > 0 {
			return senses
		}
	}
	if !whole {
		return nil
	}
	if name := g.short().find(words); name != "" {
		return g.senses(name)
	}
	return nil
}

// join returns the words in one form of each, with spaces between them.
func join(words []word, form func(word) string) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = form(w)
	}
	return strings.Join(parts, " ")
}

// variants returns other spellings of an unknown name: Sto. and S. written out, emphasis
// removed, digits replaced by the letters they look like.
func variants(words []word) []string {
	var out []string
	for _, long := range []map[string]string{
		{"s": "sao", "sto": "santo", "sta": "santa", "st": "santo", "n": "nova", "v": "vila", "vn": "vila nova",
			"vnova": "vila nova", "p": "ponta", "sra": "senhora", "q": "quinta", "qta": "quinta"},
		{"s": "santa"}, {"s": "santo"},
	} {
		parts := make([]string, len(words))
		changed := false
		for i, w := range words {
			parts[i] = w.folded
			if l, ok := long[w.folded]; ok && len(words) > 1 {
				parts[i], changed = l, true
			}
		}
		if changed {
			out = append(out, strings.Join(parts, " "))
		}
	}
	if len(words) == 1 {
		return append(out, respelled(words[0].folded)...)
	}
	if calm := join(words, func(w word) string { return shorten(w.folded, 1) }); calm != join(words,
		func(w word) string { return w.folded }) {
		out = append(out, calm) // Margem Suuul
	}
	return out
}

// respelled returns other spellings of one word: Portooo, barrrreiro, Lisb0a.
func respelled(folded string) (out []string) {
	for _, s := range []string{shorten(folded, 1), shorten(folded, 2), letters(folded)} {
		if s != folded && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	// Lisboaa
	if n := len(folded); n > 5 && folded[n-1] == folded[n-2] && strings.IndexByte("aeio", folded[n-1]) >= 0 {
		out = append(out, folded[:n-1])
	}
	return out
}

// letters replaces digits that look like letters, in a word that has more letters than digits.
func letters(s string) string {
	count := 0
	for _, r := range s {
		if unicode.IsDigit(r) {
			count++
		}
	}
	if count == 0 || len(s) < 4 || count > len(s)/3 || s[0] <= '9' {
		return s
	}
	return strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t").Replace(s)
}

// context is what surrounds the words of a name in its segment.
type context struct {
	words         []word
	whole         bool // nothing surrounds them
	unread, noise int  // words without information, words that are never a name
	lives, from   bool // the words before say that the person lives there, comes from there
	linked        bool // it continues with "de" and another word: Rio de Moinhos is not Rio
	common        bool // it is also an everyday word
}

// plausible reports whether people who write these words may mean s. Small places with everyday
// names are the difficulty. Alone they count; inside a sentence they count only when they look
// like a name.
func (c context) plausible(s sense) bool {
	capital := unicode.IsUpper([]rune(c.words[0].raw)[0])
	everyday := (c.common && s.kind != senseCountry || s.kind == sensePart) && !c.whole
	said := c.lives || c.from && s.place.Country == "PT"
	switch {
	case s.code && s.kind == senseCountry && s.place.Country == "PT":
		return true // porto pt
	case s.code:
		return c.whole && strings.ToUpper(c.words[0].raw) == c.words[0].raw
	case len(c.words) > 1 || s.kind == senseFolk || s.kind == senseNone || s.kind == senseFiction:
		return true
	case len(c.words[0].folded) < 3 && s.kind != senseCountry && s.weight < 6:
		return false
	case s.alias && !c.whole && c.noise > 0 && s.weight < 5.5 && s.place.Country != "PT" && s.kind != senseCountry:
		return false // Vale do Sousa is not Sousse
	case everyday && (c.linked || !said && (!capital || c.unread > 0)):
		return false // atrás da moita
	case !c.whole && !capital && c.linked && s.place.Country != "PT":
		return false // ao virar da esquina is not Virar
	case !c.whole && c.unread > 0 && !capital:
		return s.weight >= 6
	case !c.whole && c.unread > 2:
		return s.weight >= 5
	}
	return true
}

// linked reports whether the words after a name continue it.
func linked(after []word) bool {
	return len(after) > 1 && strings.Contains(" de da do das dos ", " "+after[0].folded+" ")
}

// denied reports whether the words before or after a name say that it is not meant: "Trafaria
// não", "não a dos EUA".
func (g *Gazetteer) denied(before, after []word) bool {
	not := func(w word) bool { return w.folded == "nao" || w.folded == "not" }
	if len(after) > 0 && not(after[0]) && (len(after) == 1 || after[1].folded == "existe") {
		return true
	}
	for i := len(before) - 1; i >= 0 && i >= len(before)-4; i-- {
		if not(before[i]) {
			return true
		}
		if g.words[before[i].folded]&^(wordLive|wordFrom|wordSmall) != 0 || g.words[before[i].folded] == 0 {
			return false
		}
	}
	return false
}

// role interprets the words before a name.
func (g *Gazetteer) role(before []word) int {
	role := 0
	for i := len(before) - 1; i >= 0 && i >= len(before)-4; i-- {
		kind := g.words[before[i].folded]
		long := len(before[i].folded) > 2
		switch {
		case kind&wordLive != 0 && long:
			role += 3
		case kind&wordFrom != 0 && long:
			role -= 3
		case kind&wordLive != 0 && i == len(before)-1:
			role++
		case kind&wordFrom != 0 && i == len(before)-1:
			role--
		}
	}
	return max(min(role, 3), -3)
}

// trailing interprets the word after a name.
func trailing(after string) int {
	switch after {
	case "based", "resident", "atualmente", "actualmente", "currently":
		return 3
	case "born", "native", "bred", "raised", "born and bred":
		return -3
	}
	return 0
}
