package geo

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/golang/geo/s2"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/geo/atlas"
)

// Facts are what is known of a site, an instance or an account that must be placed. Every field
// may be empty. What exceeds a limit is ignored.
type Facts struct {
	Unit partition.Unit `json:"unit"`
	Host string         `json:"host,omitempty"` // of a site or an instance
	// geo metadata, addresses, the location field of a profile
	Declared []string `json:"declared,omitempty"`
	Language string   `json:"language,omitempty"` // BCP 47
	TimeZone string   `json:"time_zone,omitempty"`
	Title    string   `json:"title,omitempty"`
	Text     string   `json:"text,omitempty"`
	// geo slices of placed units that link to it
	Linkers map[partition.Slice]int `json:"linkers,omitempty"`
	// where it is placed, 0 = nowhere yet
	Now partition.Slice `json:"now,omitempty"`
}

// Evidence is one fact that supports a place.
type Evidence struct {
	Kind    string  `json:"kind"`           // tld, declared, zone, language, title, text or links
	Text    string  `json:"text"`           // the original text, at most maxShown bytes
	Place   string  `json:"place"`          // the place that it indicates
	Country string  `json:"country"`        // ISO code
	Cell    string  `json:"cell,omitempty"` // token; "" when it indicates only a country
	Weight  float64 `json:"weight"`
}

// Judgement says where Facts put a unit, and why.
type Judgement struct {
	Slice   partition.Slice `json:"slice"`   // 0: unknown, it stays in its hash slice
	Place   string          `json:"place"`   // name of the place or the country
	Country string          `json:"country"` // ISO code
	// only the country is known; one of its cells was drawn by the unit's name, weighted by
	// population
	Spread     bool       `json:"spread"`
	Confidence float64    `json:"confidence"`
	Evidence   []Evidence `json:"evidence"` // strongest first
}

// The limits of Facts, by name.
const (
	MaxDeclared  = 16       // of Facts.Declared
	MaxLinkers   = 4096     // of Facts.Linkers
	MaxTextBytes = 16 << 10 // of Facts.Text
	MaxSpans     = 40       // sentences of it
	maxShown     = 120      // bytes of Evidence.Text
)

// The weights. A unit needs leastCountry for a country and leastPlace for a place in it. So a
// country's domain is enough for the country, and a language alone is not. One name in a text
// is not enough for a place, but a declared one is.
const (
	weightCoordinates = 4.0 // declared, times confidence
	weightDeclared    = 3.0 // declared, times confidence
	weightCityDomain  = 2.0 // .berlin
	weightDomain      = 1.5 // .pt
	weightZone        = 1.0
	weightTitle       = 0.8 // times confidence
	weightText        = 0.4 // each name, times confidence
	mostText          = 1.5 // of all names in a text for one cell
	mostLinks         = 2.0 // of all links
	enoughLinks       = 8   // linkers for mostLinks
	weightRegional    = 0.8 // a language with its region, pt-PT
	weightLanguage    = 0.7 // a language of one country, da

	leastCountry = 1.0
	leastPlace   = 1.0
	leastLead    = 1.5  // of the first over the second
	neighbours   = 60.0 // km: evidence for cells this near is added up
	// Moving costs a hand-over. A placed unit moves only when the new place has at least
	// stayFactor times the weight of the old one plus stayBonus.
	stayFactor = 1.5
	stayBonus  = 1.0
)

// Judge places units by evidence. It is pure, immutable and safe for concurrent use.
type Judge struct {
	g         *Gazetteer
	level     int
	slices    []partition.Slice
	countries map[string]*homeland
	cellOf    map[partition.Slice]string // the country in which most of the cell's people live
}

// homeland has the cells of one country, with the population up to and including each cell.
type homeland struct {
	name  string
	cells []partition.Slice
	sums  []int
}

// NewJudge returns a Judge for a swarm with geo slices of that level, at most atlas.FinestCell.
func NewJudge(g *Gazetteer, level int) *Judge {
	j := &Judge{g: g, level: level, slices: g.Slices(level), countries: map[string]*homeland{},
		cellOf: make(map[partition.Slice]string, 1<<14)}
	most := make(map[partition.Slice]int, 1<<14)
	var all []peopled // of the country of the rows being read
	country := ""
	for i := range g.table.Len() {
		r := g.table.Row(i)
		if c := cellOf(r, level); c != 0 && r.Rank >= atlas.Capital && r.Rank <= atlas.Locality {
			if here, _ := g.table.Region(r.Region); here != country {
				j.settle(country, all, most)
				country, all = here, all[:0]
			}
			all = append(all, peopled{c, max(r.Population, 1)})
		}
	}
	j.settle(country, all, most)
	return j
}

// peopled is a cell with people of one country in it.
type peopled struct {
	cell   partition.Slice
	people int
}

// settle makes the homeland of a country from its places. A cell belongs to the country if no
// other country has more people in it; most has the largest number so far.
func (j *Judge) settle(country string, places []peopled, most map[partition.Slice]int) {
	if len(places) == 0 {
		return
	}
	h := &homeland{name: country}
	if n, ok := j.g.countries[country]; ok {
		h.name = j.g.table.Place(n).Name
	}
	slices.SortFunc(places, func(a, b peopled) int { return cmp.Compare(a.cell, b.cell) })
	total := 0
	for i := 0; i < len(places); {
		cell, people := places[i].cell, 0
		for ; i < len(places) && places[i].cell == cell; i++ {
			people += places[i].people
		}
		total += people
		h.cells, h.sums = append(h.cells, cell), append(h.sums, total)
		if people > most[cell] {
			most[cell], j.cellOf[cell] = people, country
		}
	}
	j.countries[country] = h
}

// Slices returns the geo slices of the swarm, in order. Do not modify.
func (j *Judge) Slices() []partition.Slice { return j.slices }

// At returns the geo slice of a point.
func (j *Judge) At(p partition.Point) partition.Slice { return SliceAt(j.slices, p, j.level) }

// Has reports whether s is one of the geo slices.
func (j *Judge) Has(s partition.Slice) bool {
	_, ok := slices.BinarySearch(j.slices, s)
	return ok
}

// draw returns a cell of the country, chosen by the unit's name. The more people live in a
// cell, the more units without a better place go there.
func (h *homeland) draw(u partition.Unit) partition.Slice {
	n := int(xxhash.Sum64String("echo-node spread 1\n"+string(u)) % uint64(h.sums[len(h.sums)-1]))
	i, _ := slices.BinarySearch(h.sums, n+1)
	return h.cells[i]
}

// vote is Evidence with its cell, for counting.
type vote struct {
	Evidence
	cell partition.Slice // 0: the country only
}

// Place weighs what is known of a unit. It never fails: if it cannot decide, the place is
// unknown. A unit that is placed already stays where it is unless another place is clearly
// better. It never becomes unplaced.
func (j *Judge) Place(f Facts) Judgement {
	votes := j.votes(f)
	out := Judgement{Evidence: make([]Evidence, len(votes))}
	for i, v := range votes {
		out.Evidence[i] = v.Evidence
	}
	country, weight, second := j.country(votes)
	if country == "" || weight < leastCountry || weight < leastLead*second {
		return j.stay(out, f.Now)
	}
	if home := j.cellOf[f.Now]; f.Now != 0 && home != country &&
		weight < stayFactor*countryWeight(votes, home)+stayBonus {
		return j.stay(out, f.Now)
	}
	h := j.countries[country]
	out.Country, out.Place = country, h.name
	out.Confidence = round((1 - math.Exp(-weight)) * weight / (weight + second))
	if cell, name, w, next := j.cell(votes, country); w >= leastPlace && w >= leastLead*next {
		now := j.near(votes, f.Now)
		switch {
		case cell == f.Now || f.Now == 0 || w >= stayFactor*now+stayBonus:
			out.Slice, out.Place = cell, name
			return out
		}
		out.Slice = f.Now
		return out
	}
	out.Spread = true
	if out.Slice = h.draw(f.Unit); f.Now != 0 && j.cellOf[f.Now] == country {
		out.Slice = f.Now
	}
	return out
}

// stay returns a judgement without a decision: what is placed stays.
func (j *Judge) stay(out Judgement, now partition.Slice) Judgement {
	out.Slice, out.Country = now, j.cellOf[now]
	if h := j.countries[out.Country]; now != 0 && h != nil {
		out.Place = h.name
	}
	return out
}

// countryWeight returns the weight of all votes for a country.
func countryWeight(votes []vote, country string) (sum float64) {
	for _, v := range votes {
		if v.Country == country {
			sum += v.Weight
		}
	}
	return sum
}

// country returns the country with the most weight, its weight, and the weight of the next.
func (j *Judge) country(votes []vote) (best string, first, second float64) {
	sums := map[string]float64{}
	for _, v := range votes {
		if j.countries[v.Country] != nil {
			sums[v.Country] += v.Weight
		}
	}
	for _, c := range slices.Sorted(maps.Keys(sums)) {
		switch w := sums[c]; {
		case w > first:
			best, first, second = c, w, first
		case w > second:
			second = w
		}
	}
	return best, first, second
}

// near returns the weight for a cell, including its neighbourhood.
func (j *Judge) near(votes []vote, cell partition.Slice) (sum float64) {
	if cell == 0 {
		return 0
	}
	for _, v := range votes {
		if v.cell == cell || v.cell != 0 && apart(v.cell, cell) <= neighbours {
			sum += v.Weight
		}
	}
	return sum
}

// cell returns the cell of country with the most weight, its weight, and the weight of the next
// cell that is not its neighbour.
func (j *Judge) cell(votes []vote, country string) (best partition.Slice, name string, first, second float64) {
	type candidate struct {
		cell   partition.Slice
		name   string
		weight float64 // with the neighbourhood
		own    float64 // without
	}
	var all []candidate
	for _, v := range votes {
		if v.cell == 0 || v.Country != country {
			continue
		}
		i := slices.IndexFunc(all, func(c candidate) bool { return c.cell == v.cell })
		if i < 0 {
			all = append(all, candidate{cell: v.cell, name: v.Place, weight: j.near(votes, v.cell)})
			i = len(all) - 1
		}
		all[i].own += v.Weight
	}
	if len(all) == 0 {
		return 0, "", 0, 0
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(b.own, a.own), cmp.Compare(a.cell, b.cell))
	})
	for _, c := range all[1:] {
		if apart(c.cell, all[0].cell) > neighbours {
			second = max(second, c.weight)
		}
	}
	return all[0].cell, all[0].name, all[0].weight, second
}

// apart returns the distance of two cells' centres in km.
func apart(a, b partition.Slice) float64 {
	return 6371 * s2.CellID(a).LatLng().Distance(s2.CellID(b).LatLng()).Radians()
}
