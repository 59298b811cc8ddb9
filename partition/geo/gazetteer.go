package geo

import (
	"crypto/sha256"
	_ "embed" // the tables
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/echo-node/echo-node/partition/geo/atlas"
)

// Version is the version of the rules of this package. It is part of the Digest.
const Version = 2

//go:embed hand.tsv
var handTable string

//go:embed words.txt
var wordTable string

// Gazetteer resolves names of places. It is immutable and safe for concurrent use. One takes
// about 3 MB in addition to the embedded table.
type Gazetteer struct {
	table     *atlas.Table
	hand      map[string][]sense  // folded name -> the senses in hand.tsv
	words     map[string]wordKind // folded word -> the kind in words.txt
	regions   map[string][]sense  // folded name of a first division -> the divisions with that name
	countries map[string]int      // ISO code -> its row
	short     func() *shortForms  // made at first use
}

// sense is one meaning of a name.
type sense struct {
	place  atlas.Place
	kind   senseKind
	admins []string // first divisions that an area spans, its own first
	weight float64  // log10 of how many people would mean it
	code   bool     // letters of a country, a state or an airport
	home   bool     // a municipality of Portugal
	alias  bool     // not its main name
	hand   bool     // it is in hand.tsv
}

// senseKind is the kind of a meaning. hand.tsv names most of them (readHand).
type senseKind uint8

const (
	senseCountry senseKind = iota
	senseRegion            // a first division
	senseArea              // a region of another kind
	senseCity
	sensePart
	senseWeak // a common word
	senseCode
	senseFolk
	senseNone
	senseFiction // of a novel or a film, set in a real country
)

// wordKind is a set of kinds of everyday words. words.txt names them (readWords).
type wordKind uint8

const (
	wordSmall wordKind = 1 << iota
	wordNear
	wordLive
	wordFrom
	wordNever
	wordCommon
)

// Open reads the embedded tables, in about 10 ms.
func Open() (*Gazetteer, error) {
	table, err := atlas.Open()
	if err != nil {
		return nil, fmt.Errorf("open gazetteer: %w", err)
	}
	g := &Gazetteer{table: table, hand: map[string][]sense{}, words: map[string]wordKind{}, countries: map[string]int{}}
	for i := range table.Len() {
		if r := table.Row(i); r.Rank == atlas.Country {
			country, _ := table.Region(r.Region)
			g.countries[country] = i
		}
	}
	g.regions = regionsOf(table)
	if err := g.readWords(wordTable); err != nil {
		return nil, fmt.Errorf("open gazetteer: %w", err)
	}
	if err := g.readHand(handTable); err != nil {
		return nil, fmt.Errorf("open gazetteer: %w", err)
	}
	g.short = sync.OnceValue(func() *shortForms { return newShortForms(g) })
	return g, nil
}

// Digest identifies the tables and rules; 32 hex digits.
func (g *Gazetteer) Digest() string {
	h := sha256.New()
	fmt.Fprintf(h, "echo-node geo %d\n%d\n%s\n%d\n%s\n", Version, len(handTable), handTable, len(wordTable), wordTable)
	h.Write([]byte(g.table.Sum()))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// regionsOf makes senses for the first divisions without a row of their own, from their places.
// A division has the sum of their population and lies where the largest is.
func regionsOf(table *atlas.Table) map[string][]sense {
	type division struct{ total, largest, most int }
	all := make([]division, table.Regions())
	var order []int // the divisions in the order of their first places
	for i := range table.Len() {
		r := table.Row(i)
		if r.Rank < atlas.Capital || r.Cell == 0 {
			continue
		}
		d := &all[r.Region]
		if d.largest == 0 {
			order = append(order, r.Region)
		}
		d.total += r.Population
		if r.Population >= d.most {
			d.largest, d.most = i+1, r.Population
		}
	}
	out := make(map[string][]sense, len(order))
	for _, n := range order {
		country, name := table.Region(n)
		if name == "" || digits(name) {
			continue
		}
		p := table.Place(all[n].largest - 1)
		p.Name, p.Admin2, p.Rank, p.Population = name, "", atlas.Region, all[n].total
		folded := atlas.Fold(name)
		out[folded] = append(out[folded], sense{place: p, kind: senseRegion, admins: []string{name},
			weight: people(p.Population) + homeBonus(country)})
	}
	return out
}

// digits reports whether s has only ASCII digits. It is true for "".
func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// readWords reads words.txt into g.words. Each line is a kind, a colon and its words.
func (g *Gazetteer) readWords(text string) error {
	kinds := map[string]wordKind{"small": wordSmall, "near": wordNear, "live": wordLive, "from": wordFrom,
		"never": wordNever, "common": wordCommon}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, words, _ := strings.Cut(line, ":")
		kind, ok := kinds[name]
		if !ok {
			return fmt.Errorf("words: list %q", name)
		}
		for _, w := range strings.Fields(words) {
			g.words[w] |= kind
		}
	}
	return nil
}

// readHand reads hand.tsv into g.hand. A line whose place is not in the table is an error.
func (g *Gazetteer) readHand(text string) error {
	kinds := map[string]senseKind{"nick": senseCity, "part": sensePart, "area": senseArea, "weak": senseWeak,
		"code": senseCode, "folk": senseFolk, "none": senseNone, "fiction": senseFiction}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cols := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(cols) != 5 {
			return fmt.Errorf("names by hand: %d columns in %q", len(cols), line)
		}
		kind, ok := kinds[cols[4]]
		if !ok {
			return fmt.Errorf("names by hand: kind %q", cols[4])
		}
		admins := strings.Split(cols[3], ",")
		target, ok := g.target(cols[1], cols[2], admins[0])
		if !ok {
			return fmt.Errorf("names by hand: no place %q in %s, %s", cols[1], cols[3], cols[2])
		}
		s := sense{place: target, kind: kind, admins: admins, weight: handWeight(kind, target), code: kind == senseCode,
			hand: true}
		switch {
		case target.Rank == atlas.Country && (kind == senseCity || kind == senseCode):
			s.kind, s.admins = senseCountry, nil
		case target.Rank == atlas.Region && kind == senseCity:
			s.kind = senseRegion
		}
		for _, name := range strings.Split(cols[0], "|") {
			named := s
			if kind == sensePart || kind == senseArea || kind == senseWeak {
				named.place.Name, named.place.Population = name, 0
			}
			folded := atlas.Fold(name)
			g.hand[folded] = append(g.hand[folded], named)
		}
	}
	return nil
}

// handWeight returns the weight of a sense in hand.tsv, as a log10 of people like sense.weight.
func handWeight(kind senseKind, p atlas.Place) float64 {
	w := homeBonus(p.Country)
	switch kind {
	case sensePart:
		return w + 4.8
	case senseArea:
		return w + 5.8
	case senseWeak:
		return w + 3.3
	case senseCode:
		return w + 5
	case senseFolk:
		return w + 4.5
	}
	return w + 0.7 + people(p.Population)
}

// target returns the most populous place with that name there; admin "" is a country.
func (g *Gazetteer) target(name, country, admin string) (atlas.Place, bool) {
	var best atlas.Place
	found := false
	for _, m := range g.table.Find(name) {
		p := g.table.Place(m.Number)
		if p.Country != country || p.Admin1 != admin || (admin == "") != (p.Rank == atlas.Country) {
			continue
		}
		if !found || better(p, best) {
			best, found = p, true
		}
	}
	return best, found
}

// better reports whether to show row a rather than row b for one name in one division. A town
// is better than the municipality around it; otherwise the bigger one is better.
func better(a, b atlas.Place) bool {
	if a.Located != b.Located {
		return a.Located
	}
	if town := a.Rank >= atlas.Capital; town != (b.Rank >= atlas.Capital) {
		return town
	}
	return a.Population > b.Population
}

// people returns the weight of a population: its log10, at least that of 300.
func people(n int) float64 { return math.Log10(float64(max(n, 300))) }

// homeBonus makes Portugal more likely than its size, because this crawl began there. Many of
// its towns share their name with a larger one in Brazil or Spain.
func homeBonus(country string) float64 {
	if country == "PT" {
		return 1.2
	}
	return 0
}

// senses lists the possible meanings of a name as typed.
func (g *Gazetteer) senses(name string) []sense {
	folded := atlas.Fold(name)
	out := append([]sense(nil), g.hand[folded]...)
	first := len(out)
	accents := atlas.Spell(name) != folded
	for _, m := range g.table.Find(name) {
		p := g.table.Place(m.Number)
		s := sense{place: p, kind: senseCity, admins: []string{p.Admin1},
			weight: people(p.Population) + homeBonus(p.Country), alias: m.Alias}
		switch p.Rank {
		case atlas.Country:
			s.kind, s.admins, s.weight = senseCountry, nil, max(s.weight, 5.5)+0.5
		case atlas.Region:
			s.kind = senseRegion
		case atlas.Municipality:
			if s.home = p.Country == "PT"; s.home {
				s.weight = max(s.weight, homeBonus("PT")+4) // some have no population in the table
			}
		case atlas.Capital:
			s.weight += 0.5
		}
		if m.Alias {
			if p.Country != "PT" && p.Rank != atlas.Country { // GeoNames calls Lisboa Lisbon
				s.weight -= aliasMalus
			}
			s.code = len(folded) <= 3 // ARE is a country, are is not
		}
		if accents && !m.Spelled {
			s.weight -= accentMalus
		}
		if !describe(out[:first], s) && !merge(out[first:], s) {
			out = append(out, s)
		}
	}
	for _, s := range g.regions[folded] {
		if accents && atlas.Spell(name) != atlas.Spell(s.place.Name) {
			s.weight -= accentMalus
		}
		if !merge(out[first:], s) {
			out = append(out, s)
		}
	}
	return out
}

// A name in another language is ten times less likely to be meant. A name without the accents
// that were typed is a hundred times less likely.
const (
	aliasMalus  = 1.0
	accentMalus = 2.0
)

// describe gives a part of a town in hand.tsv the table's row for it. The row has the spelling
// and the location.
func describe(hand []sense, s sense) bool {
	if s.place.Rank < atlas.Capital || !s.place.Located || s.alias {
		return false
	}
	for i := range hand {
		o := &hand[i]
		if o.kind == sensePart && o.place.Country == s.place.Country && o.place.Admin1 == s.place.Admin1 &&
			(o.place.Admin2 == "" || o.place.Admin2 == s.place.Admin2) {
			// The weight stays lower, so that it does not count in small letters within a
			// sentence.
			o.place, o.kind, o.weight = s.place, s.kind, max(o.weight-0.1, s.weight)
			return true
		}
	}
	return false
}

// merge joins the rows of one name in one division (a town, and the municipality and the
// district with its name). They are not ambiguous.
func merge(out []sense, s sense) bool {
	if s.kind == senseCountry {
		return false
	}
	for i := range out {
		o := &out[i]
		if o.kind == senseCountry || o.place.Country != s.place.Country || o.place.Admin1 != s.place.Admin1 {
			continue
		}
		weight, home := max(o.weight, s.weight), o.home || s.home
		if (o.alias && !s.alias) || (o.alias == s.alias && better(s.place, o.place)) {
			*o = s
		}
		o.weight, o.home = weight, home
		return true
	}
	return false
}
