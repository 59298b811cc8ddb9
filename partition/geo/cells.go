package geo

import (
	"math"
	"slices"

	"github.com/golang/geo/s2"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/geo/atlas"
)

// CellLevel is the level of the cell of a Place: some 80 km across.
const CellLevel = 7

// Cell is the S2 cell of that level at a point.
func Cell(p partition.Point, level int) partition.Slice {
	return partition.Slice(s2.CellIDFromLatLng(s2.LatLngFromDegrees(p.Lat, p.Lon)).Parent(level))
}

// Slices are the geo slices of a swarm in order: the cells of that level which
// hold a place of the gazetteer, and all cells of level 4 for what lies
// elsewhere.
func (g *Gazetteer) Slices(level int) []partition.Slice {
	var out []partition.Slice
	for i := range g.table.Len() {
		if c := cellOf(g.table.Row(i), level); c != 0 && (len(out) == 0 || out[len(out)-1] != c) {
			out = append(out, c)
		}
	}
	for face := range 6 {
		cell := s2.CellIDFromFace(face)
		end := cell.ChildEndAtLevel(partition.ParentLevel)
		for c := cell.ChildBeginAtLevel(partition.ParentLevel); c != end; c = c.Next() {
			out = append(out, partition.Slice(c))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// cellOf is the cell of a place in the table, 0 when that is not located. The
// table has them to level FinestCell, so that all peers have the same ones,
// whatever their processors make of a sine.
func cellOf(r atlas.Row, level int) partition.Slice {
	if r.Cell == 0 {
		return 0
	}
	return partition.Slice(s2.CellID(r.Cell).Parent(level))
}

// SliceAt is the slice of a point among slices as Slices gives them: its cell
// of that level, or the cell of level 4 around it.
func SliceAt(all []partition.Slice, p partition.Point, level int) partition.Slice {
	cell := Cell(p, level)
	if _, ok := slices.BinarySearch(all, cell); ok {
		return cell
	}
	return partition.Slice(s2.CellID(cell).Parent(partition.ParentLevel))
}

func (g *Gazetteer) placeOf(p atlas.Place) Place {
	out := Place{Name: p.Name, Country: p.Country, Admin1: p.Admin1, Admin2: p.Admin2, Lat: p.Lat, Lon: p.Lon,
		Population: p.Population}
	if p.Located {
		out.Cell = s2.CellID(Cell(partition.Point{Lat: p.Lat, Lon: p.Lon}, CellLevel)).ToToken()
	}
	return out
}

// nearest is the populated place next to a point, if there is one within 50 km.
func (g *Gazetteer) nearest(lat, lon float64) Resolution {
	const most = 50.0 / 6371
	at := s2.PointFromLatLng(s2.LatLngFromDegrees(lat, lon))
	best, distance := -1, math.Inf(1)
	for i := range g.table.Len() {
		y, x, ok := g.table.Point(i)
		if !ok || math.Abs(y-lat) > 0.5 || g.table.Row(i).Rank < atlas.Municipality {
			continue
		}
		d := float64(at.Distance(s2.PointFromLatLng(s2.LatLngFromDegrees(y, x))))
		if d < distance {
			best, distance = i, d
		}
	}
	if best < 0 || distance > most {
		return Resolution{}
	}
	p := g.placeOf(g.table.Place(best))
	p.Lat, p.Lon = lat, lon
	p.Cell = s2.CellID(Cell(partition.Point{Lat: lat, Lon: lon}, CellLevel)).ToToken()
	const confidence = 0.95
	return Resolution{Place: &p, Confidence: confidence, Candidates: []Candidate{{p, confidence}},
		Evidence: "coordinates"}
}

// zoneCountry is the country of a time zone, or the islands that have one of
// their own: a zone is set by software and says no more.
func (g *Gazetteer) zoneCountry(name, city string) Resolution {
	p, ok := g.zoneCity(city)
	if !ok {
		return Resolution{}
	}
	if p.Rank != atlas.Region || name[:8] != "Atlantic" {
		n, ok := g.countries[p.Country]
		if !ok {
			return Resolution{}
		}
		p = g.table.Place(n)
	}
	place := g.placeOf(p)
	const confidence = 0.6
	return Resolution{Place: &place, Confidence: confidence, Candidates: []Candidate{{place, confidence}},
		Evidence: "zone"}
}

// zoneCity is the place that a time zone is named after.
func (g *Gazetteer) zoneCity(city string) (p atlas.Place, ok bool) {
	best := math.Inf(-1)
	for _, s := range g.senses(city) {
		if s.kind != senseFolk && s.kind != senseNone && s.kind != senseFiction && s.weight > best {
			p, best = s.place, s.weight
		}
	}
	return p, !math.IsInf(best, -1)
}

// maxZone is longer than any name of a time zone, in bytes.
const maxZone = 64

// zoneOf is the country of a time zone as a hint: a name of the time zone
// database, or one of those that services had of their own (Lisbon, Brasilia).
func (g *Gazetteer) zoneOf(name string) string {
	if name == "" || len(name) > maxZone {
		return ""
	}
	city, ok := findZone(name)
	if !ok {
		city = name
	}
	p, _ := g.zoneCity(city)
	return p.Country
}
