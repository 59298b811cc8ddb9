package geo

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/echo-node/echo-node/partition/geo/atlas"
)

// Hints are what else is known of who wrote the text. The zero Hints know
// nothing.
type Hints struct {
	Country  string // ISO code of a likely country, "" unknown
	Language string // BCP 47, "" unknown
	TimeZone string // of the time zone database, "" unknown
}

// Place is a place on earth.
type Place struct {
	Name       string  `json:"name"`
	Country    string  `json:"country"`          // ISO 3166-1 alpha-2
	Admin1     string  `json:"admin1,omitempty"` // first division as GeoNames calls it, "" for a country
	Admin2     string  `json:"admin2,omitempty"` // second division, Portugal only
	Lat        float64 `json:"lat"`              // degrees
	Lon        float64 `json:"lon"`
	Cell       string  `json:"cell"` // token of the S2 cell of level CellLevel
	Population int     `json:"population,omitempty"`
}

// Candidate is one reading of a text.
type Candidate struct {
	Place      Place   `json:"place"`
	Confidence float64 `json:"confidence"` // 0 to 1; those of one text add up to at most 1
}

// Resolution is what a text points to.
type Resolution struct {
	Place      *Place      `json:"place"` // nil: unknown
	Confidence float64     `json:"confidence"`
	Candidates []Candidate `json:"candidates"` // likeliest first, at most MaxCandidates; also when unknown
	Evidence   string      `json:"evidence"`   // name, coordinates, flag, zone or ""
}

// MaxCandidates is the length of the longest list of candidates.
const MaxCandidates = 5

// leastConfidence is what a reading needs to be given out as the place: it is
// likelier than all others together.
const leastConfidence = 0.5

// span is a name in the text.
type span struct {
	senses  []sense
	scores  []float64 // of senses, with the support of the other spans
	best    int
	segment int
	role    int // above 0: lives there; below: comes from there
	flag    bool
}

func (s *span) sense() sense { return s.senses[s.best] }

// Resolve reads text. It never fails: what it cannot read is unknown.
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

// spans finds the names in a text, longest first, and counts the words that
// tell nothing.
func (g *Gazetteer) spans(t text) (out []span, unread int) {
	for i, seg := range t.segments {
		found, rest := g.segmentSpans(seg, i)
		out = append(out, found...)
		unread += rest
	}
	for _, code := range t.flags {
		if n, ok := g.countries[code]; ok {
			p := g.table.Place(n)
			out = append(out, span{senses: []sense{{place: p, kind: senseCountry, weight: 8}}, segment: -1, flag: true})
		}
	}
	return out, unread
}

func (g *Gazetteer) segmentSpans(seg segment, number int) (out []span, unread int) {
	words := seg.words
	type hit struct {
		from, to int
		senses   []sense
	}
	var hits []hit
	for i := 0; i < len(words); {
		n, senses := g.longest(words[i:], i == 0)
		if n == 0 {
			if g.words[words[i].folded] == 0 && len(words[i].folded) > 1 && !digits(words[i].folded) {
				unread++
			}
			i++
			continue
		}
		hits = append(hits, hit{i, i + n, senses})
		i += n
	}
	for _, h := range hits {
		whole := h.to-h.from == len(words)
		senses := slices.DeleteFunc(h.senses, func(s sense) bool { return !plausible(s, words[h.from:h.to], whole, unread) })
		if len(senses) == 0 {
			unread++
			continue
		}
		if senses[0].kind == senseNone {
			continue
		}
		role := g.role(words[:h.from])
		if h.to < len(words) {
			role += trailing(words[h.to].folded)
		}
		if seg.moved {
			role++
		}
		if senses[0].kind == senseFolk {
			role--
		}
		out = append(out, span{senses: senses, segment: number, role: role})
	}
	return out, unread
}

// longest is the longest name that begins at the first word.
func (g *Gazetteer) longest(words []word, first bool) (int, []sense) {
	const most = 7
	for n := min(most, len(words)); n > 0; n-- {
		if n == 1 && g.words[words[0].folded] != 0 && len(g.hand[words[0].folded]) == 0 {
			return 0, nil
		}
		senses := g.senses(join(words[:n], func(w word) string { return w.raw }))
		if len(senses) == 0 {
			for _, other := range variants(words[:n]) {
				if senses = g.senses(other); len(senses) > 0 {
					break
				}
			}
		}
		if n == 1 && g.words[words[0].folded]&wordNever != 0 {
			senses = slices.DeleteFunc(senses, func(s sense) bool { return s.kind != senseWeak && s.kind != senseNone })
		}
		if len(senses) > 0 {
			return n, senses
		}
	}
	return 0, nil
}

func join(words []word, form func(word) string) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = form(w)
	}
	return strings.Join(parts, " ")
}

// variants are other spellings of a name that is not known: Sto. and S. written
// out, emphasis undone.
func variants(words []word) []string {
	var out []string
	for _, long := range []map[string]string{
		{"s": "sao", "sto": "santo", "sta": "santa", "st": "santo", "n": "nova", "v": "vila", "vn": "vila nova", "vnova": "vila nova", "p": "ponta", "sra": "senhora", "q": "quinta", "qta": "quinta"},
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
		if s := shorten(words[0].folded); s != words[0].folded {
			out = append(out, s)
		}
	}
	return out
}

// plausible says whether people who write these words may mean s. Small places
// with everyday names are the trap: alone they count, inside a sentence only
// when they look like a name.
func plausible(s sense, words []word, whole bool, unread int) bool {
	capital := unicode.IsUpper([]rune(words[0].raw)[0])
	switch {
	case s.code && s.kind == senseCountry && s.place.Country == "PT":
		return true // porto pt
	case s.code:
		return whole && strings.ToUpper(words[0].raw) == words[0].raw
	case len(words) > 1 || s.kind == senseFolk || s.kind == senseNone:
		return true
	case len(words[0].folded) < 3 && s.kind != senseCountry && s.weight < 6:
		return false
	case !whole && unread > 0 && !capital:
		return s.weight >= 6
	case !whole && unread > 2:
		return s.weight >= 5
	}
	return true
}

// role reads the words before a name.
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

// trailing reads the word after a name.
func trailing(after string) int {
	switch after {
	case "based", "resident":
		return 3
	case "born", "native", "bred", "raised":
		return -3
	}
	return 0
}

// score weighs every sense of every span: people, hints, and what the other
// spans say about where it lies.
func (g *Gazetteer) score(spans []span, hints Hints) {
	for i := range spans {
		s := &spans[i]
		s.scores = make([]float64, len(s.senses))
		for j, a := range s.senses {
			w := a.weight + hintBonus(a.place.Country, hints)
			supported := false
			for k := range spans {
				if k == i {
					continue
				}
				v := support(a, spans[k].senses)
				w += v
				supported = supported || v > 0
			}
			if !supported && lonely(a) {
				w = math.Inf(-1)
			}
			s.scores[j] = w
		}
		for j := range s.scores {
			if s.scores[j] > s.scores[s.best] {
				s.best = j
			}
		}
	}
}

// lonely says that a sense needs another name beside it to count: a small
// foreign place, or a common word.
func lonely(a sense) bool {
	return a.kind != senseCountry && homeBonus(a.place.Country) == 0 && a.kind == senseCity && people(a.place.Population) < 4.85
}

func hintBonus(country string, hints Hints) float64 {
	bonus := 0.0
	if hints.Country != "" && strings.EqualFold(hints.Country, country) {
		bonus += 2
	}
	language := strings.ToLower(hints.Language)
	switch {
	case language == "pt-pt" && country == "PT", language == "pt-br" && country == "BR":
		bonus++
	case strings.HasPrefix(language, "pt") && (country == "PT" || country == "BR"):
		bonus += 0.5
	}
	switch hints.TimeZone {
	case "Europe/Lisbon", "Atlantic/Azores", "Atlantic/Madeira", "Lisbon", "Azores":
		if country == "PT" {
			bonus++
		}
	case "America/Sao_Paulo", "Brasilia":
		if country == "BR" {
			bonus++
		}
	}
	return bonus
}

// support is how much the best reading of another span says for (or against) a.
func support(a sense, others []sense) float64 {
	best, country, same := 0.0, false, false
	for _, o := range others {
		if o.kind == senseCountry {
			country = true
		}
		if o.place.Country != a.place.Country {
			continue
		}
		same = true
		v := 0.4
		switch {
		case o.kind == senseFolk:
			v = 0.5
		case o.kind == senseCountry:
			v = 4
		case a.kind == senseCountry:
			v = 0.4
		case contains(o, a):
			v = 5
		case slices.Contains(o.admins, a.place.Admin1):
			v = 2
		case slices.Contains(a.admins, o.place.Admin1):
			v = 1.5
		}
		best = max(best, v)
	}
	if country && !same {
		return -3
	}
	return best
}

// contains says whether a lies in o.
func contains(o, a sense) bool {
	if o.place.Country != a.place.Country || a.kind == senseCountry {
		return false
	}
	switch o.kind {
	case senseCountry:
		return true
	case senseRegion, senseArea, senseCode:
		return slices.Contains(o.admins, a.place.Admin1) && o.place.Name != a.place.Name
	}
	// Lisbon is a district, a municipality and a city.
	name := atlas.Fold(o.place.Name)
	if o.place.Admin1 != a.place.Admin1 || name == atlas.Fold(a.place.Name) {
		return false
	}
	return name == atlas.Fold(a.place.Admin2) || name == atlas.Fold(a.place.Admin1)
}

// tidy drops what the rest of the text shows to be no place: a name that stands
// for nothing, and a small or ambiguous one beside a clear one that it does not
// lie near. Where people put "Santa Cruz, Torres Vedras" or "Vila Chã, Vila do
// Conde" they mean a quarter of the latter that the gazetteer has not.
func tidy(spans []span) []span {
	spans = slices.DeleteFunc(spans, func(s span) bool { return math.IsInf(s.scores[s.best], -1) || hollow(s, spans) })
	var out []span
	for i, s := range spans {
		if !slices.ContainsFunc(spans, func(o span) bool { return overshadows(o, spans[i]) }) {
			out = append(out, s)
		}
	}
	return out
}

func overshadows(o, s span) bool {
	a, b := s.sense(), o.sense()
	if a.kind != senseCountry && b.kind == senseCountry && a.place.Country != b.place.Country {
		return !o.flag && o.segment >= s.segment && o.role >= s.role // Santiago, Cabo Verde
	}
	if a.kind == senseCountry || b.kind == senseCountry || b.kind == senseFolk || b.kind == senseWeak || s.role > o.role {
		return false
	}
	if a.place.Admin1 == b.place.Admin1 && a.place.Country == b.place.Country || contains(b, a) || contains(a, b) {
		return false
	}
	if a.place.Country != b.place.Country {
		return b.weight > a.weight+1.5
	}
	if slices.Contains(b.admins, a.place.Admin1) || slices.Contains(a.admins, b.place.Admin1) {
		return false
	}
	small := !a.home && a.kind == senseCity && a.weight < 6 && b.weight > a.weight+0.3
	return small || (s.ambiguous() && !o.ambiguous())
}

// ambiguous says that another sense elsewhere is nearly as likely as the best.
func (s *span) ambiguous() bool {
	best := s.sense().place
	for i, a := range s.senses {
		if (a.place.Country != best.Country || a.place.Admin1 != best.Admin1) && s.scores[i] > s.scores[s.best]-1 {
			return true
		}
	}
	return false
}

// twoFaced says that a name alone is a foreign place to the world and a
// municipality to the Portuguese (Lagos): without a hint that is unknown.
func twoFaced(s span, hints Hints, alone bool) bool {
	if !alone || hints != (Hints{}) || homeBonus(s.sense().place.Country) > 0 || s.sense().kind == senseCountry {
		return false
	}
	return slices.ContainsFunc(s.senses, func(a sense) bool { return a.home })
}

// choose takes the span that says most narrowly where the person lives, and
// turns its scores into confidences.
func (g *Gazetteer) choose(spans []span, unread int, hints Hints) Resolution {
	spans = tidy(spans)
	if len(spans) == 0 {
		return Resolution{}
	}
	main := -1
	rivals := 0
	for i := range spans {
		outer := slices.ContainsFunc(spans, func(o span) bool { return contains(spans[i].sense(), o.sense()) })
		if outer {
			continue
		}
		if main >= 0 && spans[i].sense().place.Admin1 != spans[main].sense().place.Admin1 && spans[i].role == spans[main].role {
			rivals++
		}
		if main < 0 || prefer(spans[i], spans[main]) {
			main = i
		}
	}
	if main < 0 { // two names that contain each other
		main = 0
	}
	factor := math.Pow(0.9, float64(min(unread, 6)))
	if rivals > 0 {
		factor *= 0.75
	}
	if twoFaced(spans[main], hints, len(spans) == 1) {
		factor *= 0.5
	}
	evidence := "name"
	if spans[main].flag {
		evidence = "flag"
	}
	return g.resolution(spans[main], factor, evidence)
}

// prefer says whether a tells better than b, which stands before it, where the
// person lives.
func prefer(a, b span) bool {
	if country := a.sense().kind == senseCountry; country != (b.sense().kind == senseCountry) {
		return !country
	}
	return a.role > b.role
}

// hollow says that a span is a common word that nothing supports.
func hollow(s span, spans []span) bool {
	a := s.sense()
	if a.kind != senseWeak {
		return false
	}
	return !slices.ContainsFunc(spans, func(o span) bool {
		b := o.sense()
		return b.kind != senseWeak && b.place.Country == a.place.Country && (b.kind == senseCountry || slices.Contains(b.admins, a.place.Admin1))
	})
}

// resolution makes confidences of the scores of a span: each sense as likely as
// the number of people who would mean it.
func (g *Gazetteer) resolution(s span, factor float64, evidence string) Resolution {
	order := make([]int, len(s.senses))
	total := 0.0
	for i := range order {
		order[i] = i
		total += math.Pow(10, s.scores[i]-s.scores[s.best])
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.scores[b], s.scores[a]) })
	r := Resolution{Evidence: evidence}
	same := 0.0 // of all senses in the division of the best
	for n, i := range order {
		p := math.Pow(10, s.scores[i]-s.scores[s.best]) / total
		best := s.sense().place
		if s.senses[i].place.Country == best.Country && s.senses[i].place.Admin1 == best.Admin1 {
			same += p
		}
		if n < MaxCandidates && p > 0.001 {
			r.Candidates = append(r.Candidates, Candidate{Place: g.placeOf(s.senses[i].place), Confidence: round(p * factor)})
		}
	}
	r.Confidence = round(same * factor)
	if r.Confidence < leastConfidence {
		r.Confidence = 0
		return r
	}
	p := g.placeOf(s.sense().place)
	r.Place = &p
	return r
}

func round(p float64) float64 { return math.Round(p*1000) / 1000 }
