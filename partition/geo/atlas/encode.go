package atlas

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/golang/geo/s2"
)

// Encode writes a table in the format of type layout. The same entries give the same bytes. It
// refuses country codes that have not two bytes, and texts that are too long. It also refuses too
// many divisions, places or names.
func Encode(w io.Writer, entries []Entry) error {
	raw, err := encode(entries)
	if err != nil {
		return fmt.Errorf("encode table of places: %w", err)
	}
	_, err = w.Write(raw)
	return err
}

// region is a first division.
type region struct{ country, name string }

// divisions numbers the first and second divisions in the order in which they occur.
type divisions struct {
	regions  []region
	regionAt map[region]int
	seconds  []string
	secondAt map[string]int
}

// divisionsOf numbers the divisions of all entries, and checks their texts. Second division 0 is
// "".
func divisionsOf(entries []Entry) (divisions, error) {
	d := divisions{regionAt: map[region]int{}, seconds: []string{""}, secondAt: map[string]int{"": 0}}
	for _, e := range entries {
		if len(e.Country) != 2 || max(len(e.Name), len(e.Admin1), len(e.Admin2)) > maxText {
			return d, fmt.Errorf("place %.50q in country %.50q", e.Name, e.Country)
		}
		r := region{e.Country, e.Admin1}
		if _, ok := d.regionAt[r]; !ok {
			d.regionAt[r] = len(d.regions)
			d.regions = append(d.regions, r)
		}
		if _, ok := d.secondAt[e.Admin2]; !ok {
			d.secondAt[e.Admin2] = len(d.seconds)
			d.seconds = append(d.seconds, e.Admin2)
		}
	}
	if max(len(d.regions), len(d.seconds)) > math.MaxUint16 {
		return d, fmt.Errorf("%d regions, %d second divisions", len(d.regions), len(d.seconds))
	}
	return d, nil
}

// writer writes columns.
type writer struct{ bytes.Buffer }

func (w *writer) u16(v int)    { w.Write(binary.LittleEndian.AppendUint16(nil, uint16(v))) }
func (w *writer) u32(v int)    { w.Write(binary.LittleEndian.AppendUint32(nil, uint32(v))) }
func (w *writer) u64(v uint64) { w.Write(binary.LittleEndian.AppendUint64(nil, v)) }

// ends writes where each of n texts ends, and puts the texts into blob.
func (w *writer) ends(blob *bytes.Buffer, n int, text func(int) string) {
	from := blob.Len()
	for i := range n {
		blob.WriteString(text(i))
		w.u32(blob.Len() - from)
	}
}

// encode returns the table: its columns in the order of type layout, then the names, with the
// header before them.
func encode(entries []Entry) ([]byte, error) {
	d, err := divisionsOf(entries)
	if err != nil {
		return nil, err
	}
	names := namesOf(entries)
	if max(len(entries), len(names)) > maxCount {
		return nil, fmt.Errorf("%d places, %d names, most %d", len(entries), len(names), maxCount)
	}
	var w writer
	var blob bytes.Buffer
	for _, r := range d.regions {
		w.WriteString(r.country)
	}
	w.ends(&blob, len(d.regions), func(i int) string { return d.regions[i].name })
	w.ends(&blob, len(d.seconds), func(i int) string { return d.seconds[i] })
	for _, e := range entries {
		w.WriteByte(byte(e.Rank))
	}
	for _, e := range entries {
		w.u16(d.regionAt[region{e.Country, e.Admin1}])
	}
	for _, e := range entries {
		w.u16(d.secondAt[e.Admin2])
	}
	for _, number := range []func(Place) int{
		func(p Place) int { return roundPopulation(p.Population) }, latitude, longitude,
		func(p Place) int { return int(cellOf(rounded(p))) },
	} {
		for _, e := range entries {
			w.u32(number(e.Place))
		}
	}
	w.ends(&blob, len(entries), func(i int) string { return entries[i].Name })
	for _, n := range names {
		w.u64(n.hash)
	}
	for _, n := range names {
		w.u32(int(n.place))
	}
	for _, n := range names {
		w.u16(int(n.spelling))
	}
	w.Write(blob.Bytes())
	return withHeader(w.Bytes(), len(d.regions), len(d.seconds), len(entries), len(names), blob.Len()), nil
}

// withHeader returns columns with the header before them.
func withHeader(columns []byte, counts ...int) []byte {
	var w writer
	for _, n := range counts {
		w.u32(n)
	}
	w.Write(columns)
	sum := sha256.Sum256(w.Bytes())
	return slices.Concat([]byte(magic), sum[:], w.Bytes())
}

// named says that a place has a name with this hash.
type named struct {
	hash     uint64
	place    uint32 // and aliasBit
	spelling uint16
}

// namesOf returns the names of all places in the order of the table, without duplicates for one
// place. The main name comes before an equal other name.
func namesOf(entries []Entry) []named {
	var out []named
	add := func(s string, place uint32) {
		h := hash(Fold(s))
		out = append(out, named{hash: h, place: place, spelling: spellingOf(s, h)})
	}
	for i, e := range entries {
		add(e.Name, uint32(i))
		for _, name := range e.Names {
			add(name, uint32(i)|aliasBit)
		}
	}
	slices.SortStableFunc(out, func(a, b named) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.place&^aliasBit, b.place&^aliasBit),
			cmp.Compare(a.place, b.place))
	})
	return slices.CompactFunc(out, func(a, b named) bool {
		return a.hash == b.hash &&
			a.place&^aliasBit == b.place&^aliasBit
	})
}

// latitude returns the stored latitude: 0.001 degrees, or nowhere.
func latitude(p Place) int {
	if !p.Located {
		return nowhere
	}
	return int(math.Round(p.Lat * 1000))
}

// longitude returns the stored longitude: 0.001 degrees, 0 without a location.
func longitude(p Place) int {
	if !p.Located {
		return 0
	}
	return int(math.Round(p.Lon * 1000))
}

// rounded returns a place with the coordinates that the table stores.
func rounded(p Place) Place {
	p.Lat, p.Lon = float64(latitude(p))/1000, float64(longitude(p))/1000
	return p
}

// cellOf returns the upper half of the cell of a place. The lower half of a cell of level
// FinestCell is zero.
func cellOf(p Place) uint32 {
	if !p.Located {
		return 0
	}
	return uint32(s2.CellIDFromLatLng(s2.LatLngFromDegrees(p.Lat, p.Lon)).Parent(FinestCell) >> 32)
}

// roundPopulation keeps two digits.
func roundPopulation(n int) int {
	unit := 1
	for n >= 100 {
		n = (n + 5) / 10
		unit *= 10
	}
	return max(0, min(n*unit, math.MaxInt32))
}
