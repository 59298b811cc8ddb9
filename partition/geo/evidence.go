package geo

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/echo-node/echo-node/partition"
)

// votes reads f and returns one vote for each fact that supports a place, strongest first.
func (j *Judge) votes(f Facts) []vote {
	domain, known := j.domain(f.Host)
	hints := Hints{Language: f.Language, TimeZone: f.TimeZone}
	var out []vote
	if known {
		out = append(out, domain)
		hints.Country = domain.Country
	}
	if v, ok := j.language(f.Language); ok {
		out = append(out, v)
	}
	if v, ok := j.resolved("zone", f.TimeZone, Hints{}, weightZone); ok && f.TimeZone != "" {
		v.cell, v.Cell = 0, ""
		out = append(out, v)
	}
	for _, text := range f.Declared[:min(len(f.Declared), MaxDeclared)] {
		if v, ok := j.resolved("declared", text, hints, weightDeclared); ok {
			out = append(out, v)
		}
	}
	if v, ok := j.resolved("title", f.Title, hints, weightTitle); ok {
		out = append(out, v)
	}
	out = append(out, j.text(f.Text, hints)...)
	out = append(out, j.links(f.Linkers)...)
	slices.SortStableFunc(out, func(a, b vote) int { return cmp.Compare(b.Weight, a.Weight) })
	return out
}

// resolved returns the vote of a text that may name a place.
func (j *Judge) resolved(kind, text string, hints Hints, weight float64) (vote, bool) {
	r := j.g.Resolve(text, hints)
	if r.Place == nil {
		return vote{}, false
	}
	if r.Evidence == "coordinates" && kind == "declared" {
		weight = weightCoordinates
	}
	v := vote{Evidence: Evidence{Kind: kind, Text: shown(text), Place: r.Place.Name, Country: r.Place.Country,
		Weight: round(weight * r.Confidence)}}
	if r.Place.Admin1 != "" && r.Place.Cell != "" { // else it is a country
		v.cell = j.At(partition.Point{Lat: r.Place.Lat, Lon: r.Place.Lon})
		v.Cell = strings.TrimPrefix(v.cell.String(), "g/")
	}
	return v, true
}

// shown returns the beginning of s, at most maxShown bytes of UTF-8.
func shown(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), maxShown+utf8.UTFMax)], "�") // which may make it longer
	if len(s) <= maxShown {
		return s
	}
	n := maxShown
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// text counts the names of places in the sentences and lines of a text, at most MaxSpans of them.
// All names for one cell together weigh at most mostText.
func (j *Judge) text(s string, hints Hints) []vote {
	byPlace := map[string]*vote{}
	s = s[:min(len(s), MaxTextBytes)]
	spans := 0
	for line := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == '\n' || r == '.' || r == ';' }) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if spans++; spans > MaxSpans {
			break
		}
		v, ok := j.resolved("text", line, hints, weightText)
		if !ok {
			continue
		}
		place := v.Country + " " + v.Cell
		if had := byPlace[place]; had != nil {
			had.Weight = round(min(mostText, had.Weight+v.Weight))
		} else {
			byPlace[place] = &v
		}
	}
	var out []vote
	for _, place := range slices.Sorted(maps.Keys(byPlace)) {
		out = append(out, *byPlace[place])
	}
	return out
}

// links turns the cells of units that link here into votes. More linkers give more weight in
// total, and a cell with a larger part of them gets more of it.
func (j *Judge) links(linkers map[partition.Slice]int) []vote {
	total, cells := 0, slices.Sorted(maps.Keys(linkers))
	cells = cells[:min(len(cells), MaxLinkers)]
	for _, c := range cells {
		total += max(linkers[c], 0)
	}
	var out []vote
	for _, c := range cells {
		n, country := linkers[c], j.cellOf[c]
		if n <= 0 || country == "" {
			continue
		}
		w := mostLinks * float64(n) / float64(total) * min(1, float64(total)/enoughLinks)
		out = append(out, vote{cell: c, Evidence: Evidence{Kind: "links", Text: c.String(),
			Place: j.countries[country].name, Country: country,
			Cell: strings.TrimPrefix(c.String(), "g/"), Weight: round(w)}})
	}
	return out
}

// domain returns the vote of the last label of a host.
func (j *Judge) domain(host string) (vote, bool) {
	i := strings.LastIndexByte(host, '.')
	if i < 0 {
		return vote{}, false
	}
	label := host[i+1:]
	v := vote{Evidence: Evidence{Kind: "tld", Text: "." + shown(label), Weight: weightDomain}}
	if city := cityDomains()[label]; city != "" {
		r := j.g.Resolve(city, Hints{})
		if r.Place == nil {
			return vote{}, false
		}
		v.Place, v.Country, v.Weight = r.Place.Name, r.Place.Country, weightCityDomain
		v.cell = j.At(partition.Point{Lat: r.Place.Lat, Lon: r.Place.Lon})
		v.Cell = strings.TrimPrefix(v.cell.String(), "g/")
		return v, true
	}
	if len(label) != 2 || strings.Contains(genericDomains, " "+label+" ") {
		return vote{}, false
	}
	v.Country = strings.ToUpper(label)
	if label == "uk" {
		v.Country = "GB"
	}
	h := j.countries[v.Country]
	if h == nil {
		return vote{}, false
	}
	v.Place = h.name
	return v, true
}

// genericDomains are country domains that are used for anything worldwide.
const genericDomains = " ac ag ai am as bz cc cd cf cm co cx dj fm ga gd gg gl gq gs io la lc li ly me ml ms nf nr nu pn pw sc sh st sx tc tf tk to tv vc vg ws "

// cityDomains maps the domains of cities to the gazetteer's names for them.
func cityDomains() map[string]string {
	return map[string]string{"amsterdam": "Amsterdam, Netherlands", "barcelona": "Barcelona, Spain",
		"berlin": "Berlin, Germany", "brussels": "Brussels, Belgium",
		"hamburg": "Hamburg, Germany", "istanbul": "Istanbul, Turkey", "koeln": "Köln, Germany",
		"london": "London, United Kingdom", "madrid": "Madrid, Spain",
		"melbourne": "Melbourne, Australia", "moscow": "Moscow, Russia", "nyc": "New York City",
		"osaka": "Osaka, Japan", "paris": "Paris, France",
		"rio": "Rio de Janeiro, Brazil", "stockholm": "Stockholm, Sweden", "sydney": "Sydney, Australia",
		"tokyo": "Tokyo, Japan", "wien": "Wien, Austria"}
}

// language returns the vote of a language tag. It votes for the tag's region, or for the
// country where nearly all writers of the language live.
func (j *Judge) language(tag string) (vote, bool) {
	base, region, _ := strings.Cut(tag, "-")
	v := vote{Evidence: Evidence{Kind: "language", Text: shown(tag), Weight: weightRegional,
		Country: strings.ToUpper(region)}}
	if len(region) != 2 {
		v.Weight = weightLanguage
		v.Country = map[string]string{"bg": "BG", "cs": "CZ", "da": "DK", "et": "EE", "fi": "FI", "he": "IL",
			"hu": "HU", "is": "IS", "ja": "JP", "ka": "GE",
			"ko": "KR", "lt": "LT", "lv": "LV", "mk": "MK", "nb": "NO", "no": "NO", "pl": "PL", "sk": "SK", "sl": "SI",
			"th": "TH", "uk": "UA", "vi": "VN"}[strings.ToLower(base)]
	}
	h := j.countries[v.Country]
	if h == nil {
		return vote{}, false
	}
	v.Place = h.name
	return v, true
}
