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
		if p := g.table.Place(i); p.Located {
			out = append(out, Cell(partition.Point{Lat: p.Lat, Lon: p.Lon}, level))
		}
	}
	for face := range 6 {
		cell := s2.CellIDFromFace(face)
		for c := cell.ChildBeginAtLevel(partition.ParentLevel); c != cell.ChildEndAtLevel(partition.ParentLevel); c = c.Next() {
			out = append(out, partition.Slice(c))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
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
	out := Place{Name: p.Name, Country: p.Country, Admin1: p.Admin1, Admin2: p.Admin2, Lat: p.Lat, Lon: p.Lon, Population: p.Population}
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
		p := g.table.Place(i)
		if !p.Located || p.Rank < atlas.Municipality || math.Abs(p.Lat-lat) > 0.5 {
			continue
		}
		d := float64(at.Distance(s2.PointFromLatLng(s2.LatLngFromDegrees(p.Lat, p.Lon))))
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
	return Resolution{Place: &p, Confidence: confidence, Candidates: []Candidate{{p, confidence}}, Evidence: "coordinates"}
}

// zoneCountry is the country of a time zone, or the islands that have one of
// their own: a zone is set by software and says no more.
func (g *Gazetteer) zoneCountry(name, city string) Resolution {
	var p atlas.Place
	best := math.Inf(-1)
	for _, s := range g.senses(city) {
		if s.kind != senseFolk && s.kind != senseNone && s.weight > best {
			p, best = s.place, s.weight
		}
	}
	if math.IsInf(best, -1) {
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
	return Resolution{Place: &place, Confidence: confidence, Candidates: []Candidate{{place, confidence}}, Evidence: "zone"}
}
