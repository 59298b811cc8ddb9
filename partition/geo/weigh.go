package geo

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/echo-node/echo-node/partition/geo/atlas"
)

// score weighs every sense of every span by population, hints, and the other spans.
func (g *Gazetteer) score(spans []span, hints Hints) {
	zone := g.zoneOf(hints.TimeZone)
	for i := range spans {
		s := &spans[i]
		s.scores = make([]float64, len(s.senses))
		for j, a := range s.senses {
			w := a.weight + hintBonus(a.place.Country, zone, hints)
			supported := false
			for k := range spans {
				if k == i {
					continue
				}
				v := support(a, spans[k].senses)
				w += v
				supported = supported || v > 0
			}
			if !supported && lonely(a) && !s.unmistakable() {
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

// lonely reports whether a sense counts only next to another name: a small foreign place.
func lonely(a sense) bool {
	return !a.hand && a.kind != senseCountry && homeBonus(a.place.Country) == 0 && a.kind == senseCity &&
		people(a.place.Population) < 4.85
}

// unmistakable reports that no other place has this name: Esch-sur-Alzette.
func (s *span) unmistakable() bool {
	const enough = 5_000
	return s.words >= 3 && len(s.senses) == 1 && s.senses[0].place.Population >= enough
}

// hintBonus returns how much the hints speak for a country. zone is the country of the hinted time
// zone.
func hintBonus(country, zone string, hints Hints) float64 {
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
	switch {
	case zone == "" || zone != country:
	case country == "PT" || country == "BR":
		bonus++
	default:
		bonus += 0.5
	}
	return bonus
}

// support returns how much the best interpretation of another span speaks for (or against) a.
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

// contains reports whether a lies in o.
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

// tidy drops spans that the rest of the text shows to be no place. This is a name with no
// meaning, or a small or ambiguous name next to a clear one that it is not near. When people
// write "Santa Cruz, Torres Vedras" or "Vila Chã, Vila do Conde", they mean a quarter of the
// latter, which the gazetteer lacks.
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

// wellKnown is the population from which on everybody knows a foreign town.
const wellKnown = 100_000

// overshadows reports whether o shows that s is no place.
func overshadows(o, s span) bool {
	a, b := s.sense(), o.sense()
	if a.kind != senseCountry && b.kind == senseCountry && a.place.Country != b.place.Country {
		return !o.flag && o.segment >= s.segment && o.role >= s.role // Santiago, Cabo Verde
	}
	if a.kind == senseCountry || b.kind == senseCountry || b.kind == senseFolk || b.kind == senseWeak ||
		s.role > o.role {
		return false
	}
	if a.place.Admin1 == b.place.Admin1 && a.place.Country == b.place.Country || contains(b, a) || contains(a, b) {
		return false
	}
	if a.place.Country != b.place.Country {
		// Zürich / Porto
		known := s.whole && a.place.Population >= wellKnown && a.place.Country != "BR" && !s.shared()
		return b.weight > a.weight+1.5 && !known
	}
	if slices.Contains(b.admins, a.place.Admin1) || slices.Contains(a.admins, b.place.Admin1) {
		return false
	}
	small := !a.home && a.kind == senseCity && a.weight < 6 && b.weight > a.weight+0.3
	return small || (s.ambiguous() && !o.ambiguous())
}

// shared reports whether another country has a place with that name, too.
func (s *span) shared() bool {
	country := s.sense().place.Country
	return slices.ContainsFunc(s.senses, func(a sense) bool { return a.place.Country != country })
}

// ambiguous reports whether another sense elsewhere is nearly as likely as the best.
func (s *span) ambiguous() bool {
	best := s.sense().place
	for i, a := range s.senses {
		if (a.place.Country != best.Country || a.place.Admin1 != best.Admin1) && s.scores[i] > s.scores[s.best]-1 {
			return true
		}
	}
	return false
}

// twoFaced reports whether a name alone means a foreign place to the world and a municipality
// to the Portuguese (Lagos). Unless a hint supports the former, it is unknown.
func (g *Gazetteer) twoFaced(s span, hints Hints, alone bool) bool {
	if !alone || hintBonus(s.sense().place.Country, g.zoneOf(hints.TimeZone), hints) > 0 ||
		homeBonus(s.sense().place.Country) > 0 || s.sense().kind == senseCountry {
		return false
	}
	return slices.ContainsFunc(s.senses, func(a sense) bool { return a.home })
}

// choose selects the span that says most precisely where the person lives, and turns its scores
// into confidences.
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
		if main >= 0 && spans[i].sense().place.Admin1 != spans[main].sense().place.Admin1 &&
			spans[i].role == spans[main].role {
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
	if g.twoFaced(spans[main], hints, len(spans) == 1) {
		factor *= 0.5
	}
	evidence := "name"
	if spans[main].flag {
		evidence = "flag"
	}
	return g.resolution(spans[main], factor, evidence)
}

// prefer reports whether a says better where the person lives than b, which comes before it.
func prefer(a, b span) bool {
	if country := a.sense().kind == senseCountry; country != (b.sense().kind == senseCountry) {
		return !country
	}
	return a.role > b.role
}

// hollow reports whether a span is a common word without support from another span.
func hollow(s span, spans []span) bool {
	a := s.sense()
	if a.kind != senseWeak {
		return false
	}
	return !slices.ContainsFunc(spans, func(o span) bool {
		b := o.sense()
		return b.kind != senseWeak && b.place.Country == a.place.Country &&
			(b.kind == senseCountry || slices.Contains(b.admins, a.place.Admin1))
	})
}

// resolution turns the scores of a span into confidences. Each sense is as likely as the number
// of people who would mean it.
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
			r.Candidates = append(r.Candidates,
				Candidate{Place: g.placeOf(s.senses[i].place), Confidence: round(p * factor)})
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

// round keeps three digits after the point.
func round(p float64) float64 { return math.Round(p*1000) / 1000 }
