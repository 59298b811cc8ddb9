package geo

import (
	"math"
	"slices"

	"github.com/golang/geo/s2"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/geo/atlas"
)

// CellLevel is the level of the cell of a Place: about 80 km across.
const CellLevel = 7

// Cell returns the S2 cell of that level at a point.
func Cell(p partition.Point, level int) partition.Slice {
	return partition.Slice(s2.CellIDFromLatLng(s2.LatLngFromDegrees(p.Lat, p.Lon)).Parent(level))
}

// Slices returns the geo slices of a swarm in order. They are the cells of that level that hold
// a place of the gazetteer, and all cells of level 4 for points elsewhere.
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

// cellOf returns the cell of a place in the table, or 0 when the place has no location. The
// table stores cells down to level FinestCell. So all peers have the same cells, even if their
// processors compute a sine differently.
func cellOf(r atlas.Row, level int) partition.Slice {
	if r.Cell == 0 {
		return 0
	}
	return partition.Slice(s2.CellID(r.Cell).Parent(level))
}

// SliceAt returns the slice of a point among the result of Slices: its cell of that level, or
// the cell of level 4 around it.
func SliceAt(all []partition.Slice, p partition.Point, level int) partition.Slice {
	cell := Cell(p, level)
	if _, ok := slices.BinarySearch(all, cell); ok {
		return cell
	}
	return partition.Slice(s2.CellID(cell).Parent(partition.ParentLevel))
}

// placeOf returns a row of the table as a Place, with its cell if it has a location.
func (g *Gazetteer) placeOf(p atlas.Place) Place {
	out := Place{Name: p.Name, Country: p.Country, Admin1: p.Admin1, Admin2: p.Admin2, Lat: p.Lat, Lon: p.Lon,
		Population: p.Population}
	if p.Located {
		out.Cell = s2.CellID(Cell(partition.Point{Lat: p.Lat, Lon: p.Lon}, CellLevel)).ToToken()
	}
	return out
}

// nearest returns the populated place nearest to a point, if there is one within 50 km.
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

// zoneCountry returns the country of a time zone, or the islands that have their own zone.
// Software sets a zone, so it says nothing more precise.
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

// zoneCity returns the place that a time zone is named after.
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

// zoneOf returns the country of a time zone as a hint. name is a name of the time zone
// database, or a name that some services use (Lisbon, Brasilia).
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
