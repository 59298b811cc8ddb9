package atlas

import (
	"bytes"
	_ "embed" // the table
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
)

// Rank is what a place is in its country.
type Rank uint8

// The ranks. The numbers are in the table; never renumber.
const (
	Country      Rank = 1
	Region       Rank = 2 // first division: a Portuguese district, a Brazilian state
	Municipality Rank = 3 // second division
	Capital      Rank = 4 // of a country
	Seat         Rank = 5 // of a first division
	Town         Rank = 6 // seat of a smaller division
	Locality     Rank = 7 // any other populated place
	Part         Rank = 8 // of a town
)

// Place is one row of the table.
type Place struct {
	Name       string
	Country    string // ISO 3166-1 alpha-2
	Admin1     string // name of the first division, "" for a country
	Admin2     string // name of the second division, Portugal only
	Lat, Lon   float64
	Located    bool // Lat and Lon are known
	Population int  // rounded to two digits, 0 unknown
	Rank       Rank
}

// Entry is a Place with its other names, as gazgen writes it.
type Entry struct {
	Place
	Names []string
}

// ErrTable is wrapped by the errors of a table that cannot be read.
var ErrTable = errors.New("not a table of places")

// The format, after zstd: the magic, then columns. A number is a varint; a text
// is its length and its bytes; a signed number is zigzag.
//
//	magic    "echo-node gazetteer 1\n"
//	regions  count, then for each: country (2 bytes), name of the first division
//	seconds  count, then names of second divisions (the first is "")
//	places   count, then the columns:
//	         rank (1 byte each); region (its number, difference from the place
//	         before, signed); second division (its number); population (mantissa
//	         of two digits * 16 + exponent of ten); latitude and longitude in 0.001
//	         degrees (difference from the place before, signed; unknown: latitude
//	         99999 absolute is written as such); name
//	aliases  count, then for each: place (difference from the alias before), name
//
// A limit stands on every count, so that a damaged table is an error and not a
// large allocation.
const (
	magic      = "echo-node gazetteer 1\n"
	maxPlaces  = 1 << 20
	maxText    = 512
	maxDecoded = 64 << 20
	nowhere    = 99999 // latitude of a place without coordinates
)

// Encode writes a table.
func Encode(w io.Writer, entries []Entry) error {
	raw, err := columns(entries)
	if err != nil {
		return fmt.Errorf("encode table of places: %w", err)
	}
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(8<<20), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return fmt.Errorf("encode table of places: %w", err)
	}
	if _, err := z.Write(raw); err != nil {
		return fmt.Errorf("encode table of places: %w", err)
	}
	return z.Close()
}

// writer writes columns.
type writer struct{ bytes.Buffer }

func (w *writer) number(n int) { w.Write(binary.AppendUvarint(nil, uint64(n))) }
func (w *writer) signed(n int) { w.Write(binary.AppendVarint(nil, int64(n))) }
func (w *writer) text(s string) {
	w.number(len(s))
	w.WriteString(s)
}

// region is a first division.
type region struct{ country, name string }

// columns is the table before compression.
func columns(entries []Entry) ([]byte, error) {
	var w writer
	w.WriteString(magic)
	regions, regionAt := []region{}, map[region]int{}
	seconds, secondAt := []string{""}, map[string]int{"": 0}
	for _, e := range entries {
		if len(e.Country) != 2 || len(e.Name) > maxText {
			return nil, fmt.Errorf("place %.50q in country %.50q", e.Name, e.Country)
		}
		r := region{e.Country, e.Admin1}
		if _, ok := regionAt[r]; !ok {
			regionAt[r] = len(regions)
			regions = append(regions, r)
		}
		if _, ok := secondAt[e.Admin2]; !ok {
			secondAt[e.Admin2] = len(seconds)
			seconds = append(seconds, e.Admin2)
		}
	}
	w.number(len(regions))
	for _, r := range regions {
		w.WriteString(r.country)
		w.text(r.name)
	}
	w.number(len(seconds))
	for _, s := range seconds {
		w.text(s)
	}
	w.number(len(entries))
	for _, e := range entries {
		w.WriteByte(byte(e.Rank))
	}
	w.differences(entries, func(p Place) int { return regionAt[region{p.Country, p.Admin1}] })
	for _, e := range entries {
		w.number(secondAt[e.Admin2])
	}
	for _, e := range entries {
		w.number(packPopulation(e.Population))
	}
	w.differences(entries, latitude)
	w.differences(entries, longitude)
	for _, e := range entries {
		w.text(e.Name)
	}
	w.aliases(entries)
	return w.Bytes(), nil
}

func (w *writer) differences(entries []Entry, pick func(Place) int) {
	before := 0
	for _, e := range entries {
		v := pick(e.Place)
		w.signed(v - before)
		before = v
	}
}

func (w *writer) aliases(entries []Entry) {
	count, before := 0, 0
	for _, e := range entries {
		count += len(e.Names)
	}
	w.number(count)
	for i, e := range entries {
		for _, name := range e.Names {
			w.number(i - before)
			before = i
			w.text(name)
		}
	}
}

func latitude(p Place) int {
	if !p.Located {
		return nowhere
	}
	return int(math.Round(p.Lat * 1000))
}

func longitude(p Place) int {
	if !p.Located {
		return 0
	}
	return int(math.Round(p.Lon * 1000))
}

// packPopulation keeps two digits: m * 10^e as m*16 + e.
func packPopulation(n int) int {
	e := 0
	for n >= 100 {
		n = (n + 5) / 10
		e++
	}
	return n*16 + e
}

func unpackPopulation(v int) int {
	n := v / 16
	for range v % 16 {
		n *= 10
	}
	return n
}

// Table is a decoded table. It is immutable and safe for concurrent use.
type Table struct {
	places []Place
	index  []named
}

// named says that the place bears a name with this hash. The names themselves
// need not be kept: 64 bits do not collide by chance among so few, and who
// makes them collide has mistaken one village for another.
type named struct {
	hash     uint64
	place    uint32
	spelling uint16 // of the hash with accents
	alias    bool   // not its main name
}

//go:embed places.gaz
var embedded []byte

// Bytes is the embedded table as it stands, for digests. Do not modify.
func Bytes() []byte { return embedded }

// Open decodes the embedded table: some 100 ms and 15 MB.
func Open() (*Table, error) { return Decode(embedded) }

// Decode reads what Encode writes.
func Decode(data []byte) (*Table, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxDecoded))
	if err != nil {
		return nil, fmt.Errorf("open table of places: %w", err)
	}
	defer z.Close()
	raw, err := z.DecodeAll(data, nil)
	if err != nil {
		return nil, fmt.Errorf("open table of places: %w: %v", ErrTable, err)
	}
	r := &reader{rest: raw}
	t := r.table()
	if r.err != nil {
		return nil, fmt.Errorf("open table of places: %w", r.err)
	}
	return t, nil
}

func (r *reader) table() *Table {
	if string(r.bytes(len(magic))) != magic {
		r.fail("magic")
	}
	regions := make([][2]string, r.count())
	for i := range regions {
		regions[i] = [2]string{string(r.bytes(2)), r.text()}
	}
	seconds := make([]string, r.count())
	for i := range seconds {
		seconds[i] = r.text()
	}
	t := &Table{places: make([]Place, r.count())}
	for i := range t.places {
		if b := r.bytes(1); len(b) == 1 {
			t.places[i].Rank = Rank(b[0])
		}
	}
	at := 0
	for i := range t.places {
		at += r.signed()
		if at < 0 || at >= len(regions) {
			r.fail("region")
			break
		}
		t.places[i].Country, t.places[i].Admin1 = regions[at][0], regions[at][1]
	}
	for i := range t.places {
		n := r.number()
		if n >= len(seconds) {
			r.fail("second division")
			break
		}
		t.places[i].Admin2 = seconds[n]
	}
	for i := range t.places {
		t.places[i].Population = unpackPopulation(r.number())
	}
	for axis := range 2 {
		v := 0
		for i := range t.places {
			v += r.signed()
			if p := &t.places[i]; axis == 0 {
				p.Located = v != nowhere
				p.Lat = float64(v) / 1000
			} else {
				p.Lon = float64(v) / 1000
			}
		}
	}
	for i := range t.places {
		p := &t.places[i]
		if !p.Located {
			p.Lat, p.Lon = 0, 0
		} else if math.Abs(p.Lat) > 90 || math.Abs(p.Lon) > 180 {
			r.fail("coordinates")
		}
		p.Name = r.text()
	}
	t.readIndex(r)
	return t
}

func (t *Table) readIndex(r *reader) {
	for i, p := range t.places {
		t.index = append(t.index, name(p.Name, i, false))
	}
	n, at := r.count(), 0
	for range n {
		at += r.number()
		if at >= len(t.places) {
			r.fail("alias")
			break
		}
		t.index = append(t.index, name(r.text(), at, true))
	}
	slices.SortFunc(t.index, func(a, b named) int {
		switch {
		case a.hash != b.hash:
			if a.hash < b.hash {
				return -1
			}
			return 1
		case a.place != b.place:
			return int(a.place) - int(b.place)
		case a.alias == b.alias:
			return 0
		case b.alias:
			return -1
		}
		return 1
	})
	t.index = slices.CompactFunc(t.index, func(a, b named) bool { return a.hash == b.hash && a.place == b.place })
}

func name(s string, place int, alias bool) named {
	folded := hash(Fold(s))
	n := named{hash: folded, place: uint32(place), spelling: uint16(folded), alias: alias}
	if !ascii(s) {
		n.spelling = uint16(hash(Spell(s)))
	}
	return n
}

func hash(folded string) uint64 { return xxhash.Sum64String(folded) }

// Len is the number of places.
func (t *Table) Len() int { return len(t.places) }

// Place is the place with number i, 0 to Len()-1.
func (t *Table) Place(i int) Place { return t.places[i] }

// Match is a place that bears a name.
type Match struct {
	Number  int
	Alias   bool // the name is not its main one
	Spelled bool // with the accents that were asked for
}

// Find lists the places that bear a name, whatever its accents.
func (t *Table) Find(name string) []Match {
	h, spelled := hash(Fold(name)), uint16(hash(Spell(name)))
	i, _ := slices.BinarySearchFunc(t.index, h, func(n named, h uint64) int {
		if n.hash < h {
			return -1
		} else if n.hash > h {
			return 1
		}
		return 0
	})
	var out []Match
	for ; i < len(t.index) && t.index[i].hash == h; i++ {
		n := t.index[i]
		out = append(out, Match{Number: int(n.place), Alias: n.alias, Spelled: n.spelling == spelled})
	}
	return out
}

// reader reads columns; after the first fault everything reads as zero.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrTable, what)
	}
	r.rest = nil
}

func (r *reader) bytes(n int) []byte {
	if n > len(r.rest) {
		r.fail("short")
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) number() int {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > math.MaxInt32 {
		r.fail("number")
		return 0
	}
	r.rest = r.rest[n:]
	return int(v)
}

func (r *reader) signed() int {
	v, n := binary.Varint(r.rest)
	if n <= 0 || v > math.MaxInt32 || v < math.MinInt32 {
		r.fail("number")
		return 0
	}
	r.rest = r.rest[n:]
	return int(v)
}

// count is a number of things that take at least one byte each.
func (r *reader) count() int {
	n := r.number()
	if n > maxPlaces || n > len(r.rest) {
		r.fail("count")
		return 0
	}
	return n
}

func (r *reader) text() string {
	n := r.number()
	if n > maxText {
		r.fail("text")
		return ""
	}
	return string(r.bytes(n))
}
