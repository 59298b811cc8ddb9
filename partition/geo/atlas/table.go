package atlas

import (
	"crypto/sha256"
	_ "embed" // the table
	"errors"
	"fmt"
	"sort"

	"github.com/cespare/xxhash/v2"
)

// Rank is the administrative rank of a place in its country.
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

// The format can be read in place: columns of numbers of one width, little endian, and one text
// with all names. Opening a table costs nothing, and unused parts are never loaded into memory.
//
//	magic    "echo-node gazetteer 2\n"
//	digest   SHA-256 of all that follows it (32 bytes)
//	counts   of regions, second divisions, places, names, bytes of text (4 bytes each)
//	columns  in the order of type layout, without gaps
//	text     names of regions, of second divisions, of places
//
// A column has the end of each name; a name begins where the previous one ends. The columns of
// names are sorted by hash, then place.
const (
	magic      = "echo-node gazetteer 2\n"
	headerSize = len(magic) + sha256.Size + 5*4
	maxCount   = 1 << 20
	maxText    = 512
	maxBlob    = 64 << 20
	nowhere    = 99999   // latitude of a place without coordinates
	aliasBit   = 1 << 31 // in a name's place: it is not the main name
)

// FinestCell is the level of the S2 cells that the table has.
const FinestCell = 14

// layout says where the columns of a table begin.
type layout struct {
	regions, seconds, places, names, blob int // counts

	regionCountry int // 2 bytes each
	regionEnd     int // 4: where its name ends
	secondEnd     int // 4
	rank          int // 1
	region        int // 2
	second        int // 2
	population    int // 4
	lat, lon      int // 4, signed: 0.001 degrees
	cell          int // 4: the upper half of the cell of level FinestCell, 0 when not located
	nameEnd       int // 4
	hash          int // 8: of a folded name
	place         int // 4: the place with this name, and aliasBit
	spelling      int // 2: of the hash of the name with its accents
	text          int
	size          int
}

// layoutOf returns the layout of a table with these counts.
func layoutOf(regions, seconds, places, names, blob int) layout {
	l := layout{regions: regions, seconds: seconds, places: places, names: names, blob: blob}
	at := headerSize
	column := func(p *int, count, width int) {
		*p = at
		at += count * width
	}
	column(&l.regionCountry, regions, 2)
	column(&l.regionEnd, regions, 4)
	column(&l.secondEnd, seconds, 4)
	column(&l.rank, places, 1)
	column(&l.region, places, 2)
	column(&l.second, places, 2)
	column(&l.population, places, 4)
	column(&l.lat, places, 4)
	column(&l.lon, places, 4)
	column(&l.cell, places, 4)
	column(&l.nameEnd, places, 4)
	column(&l.hash, names, 8)
	column(&l.place, names, 4)
	column(&l.spelling, names, 2)
	column(&l.text, blob, 1)
	l.size = at
	return l
}

// Table is a table in its format. It is immutable and safe for concurrent use.
type Table struct {
	layout
	data string
	// Where the names of regions, second divisions and places begin in data.
	regionText, secondText, nameText int
}

//go:embed places.gaz
var embedded string

// Open returns the embedded table. It reads only the header, because the tests have checked the
// rest.
func Open() (*Table, error) { return open(embedded) }

// Decode reads what Encode writes, and checks all of it.
func Decode(data []byte) (*Table, error) {
	t, err := open(string(data))
	if err != nil {
		return nil, err
	}
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("open table of places: %w", err)
	}
	return t, nil
}

// open checks the header and the size.
func open(data string) (*Table, error) {
	fault := func(what string) error { return fmt.Errorf("open table of places: %w: %s", ErrTable, what) }
	if len(data) < headerSize || data[:len(magic)] != magic {
		return nil, fault("magic")
	}
	var counts [5]int
	for i := range counts {
		counts[i] = int(u32(data, len(magic)+sha256.Size+4*i))
	}
	if max(counts[0], counts[1], counts[2], counts[3]) > maxCount || counts[4] > maxBlob {
		return nil, fault("count")
	}
	t := &Table{layout: layoutOf(counts[0], counts[1], counts[2], counts[3], counts[4]), data: data}
	if len(data) != t.size {
		return nil, fault("size")
	}
	t.regionText = t.text
	t.secondText = t.regionText + t.last(t.regionEnd, t.regions)
	t.nameText = t.secondText + t.last(t.secondEnd, t.seconds)
	if t.nameText+t.last(t.nameEnd, t.places) != t.size {
		return nil, fault("text")
	}
	return t, nil
}

// last returns the last number of a column of ends, or 0 when the column is empty.
func (t *Table) last(column, count int) int {
	if count == 0 {
		return 0
	}
	return int(u32(t.data, column+4*(count-1)))
}

// check reads a whole table. It looks for what would make a method panic or return a wrong
// result.
func (t *Table) check() error {
	fault := func(what string, i int) error { return fmt.Errorf("%w: %s %d", ErrTable, what, i) }
	if sum := sha256.Sum256([]byte(t.data[len(magic)+sha256.Size:])); string(sum[:]) != t.Sum() {
		return fmt.Errorf("%w: digest", ErrTable)
	}
	for _, c := range []struct{ column, count int }{{t.regionEnd, t.regions}, {t.secondEnd, t.seconds},
		{t.nameEnd, t.places}} {
		before := uint32(0)
		for i := range c.count {
			end := u32(t.data, c.column+4*i)
			if end < before || end-before > maxText {
				return fault("text", i)
			}
			before = end
		}
	}
	for i := range t.places {
		lat, lon := int32(u32(t.data, t.lat+4*i)), int32(u32(t.data, t.lon+4*i))
		switch located := lat != nowhere; {
		case int(u16(t.data, t.region+2*i)) >= t.regions:
			return fault("region of place", i)
		case int(u16(t.data, t.second+2*i)) >= t.seconds:
			return fault("second division of place", i)
		case located && (lat < -90_000 || lat > 90_000 || lon < -180_000 || lon > 180_000):
			return fault("coordinates of place", i)
		case u32(t.data, t.cell+4*i) != cellOf(t.Place(i)):
			return fault("cell of place", i)
		}
	}
	for i := range t.names {
		if int(u32(t.data, t.place+4*i)&^aliasBit) >= t.places {
			return fault("place of name", i)
		}
		if i > 0 && u64(t.data, t.hash+8*i) < u64(t.data, t.hash+8*(i-1)) {
			return fault("order of name", i)
		}
	}
	return nil
}

// Sum returns the digest in the table: 32 bytes.
func (t *Table) Sum() string { return t.data[len(magic) : len(magic)+sha256.Size] }

// Len returns the number of places. Places of one country are adjacent, and within a country
// those of one region.
func (t *Table) Len() int { return t.places }

// Regions returns the number of first divisions. In each country, the places without one have a
// division without a name.
func (t *Table) Regions() int { return t.regions }

// Region returns the country and the name of a first division, 0 to Regions()-1.
func (t *Table) Region(i int) (country, name string) {
	return t.data[t.regionCountry+2*i : t.regionCountry+2*i+2], t.cut(t.regionText, t.regionEnd, i)
}

// Row has the fields for counting over many places. It costs less than a Place.
type Row struct {
	Rank       Rank
	Region     int
	Population int
	Cell       uint64 // the S2 cell of level FinestCell, 0 when not located
}

// Row returns the place with number i, 0 to Len()-1.
func (t *Table) Row(i int) Row {
	return Row{
		Rank:       Rank(t.data[t.rank+i]),
		Region:     int(u16(t.data, t.region+2*i)),
		Population: int(u32(t.data, t.population+4*i)),
		Cell:       uint64(u32(t.data, t.cell+4*i)) << 32,
	}
}

// Point returns the location of the place with number i, and false when it is not known.
func (t *Table) Point(i int) (lat, lon float64, ok bool) {
	v := int32(u32(t.data, t.lat+4*i))
	if v == nowhere {
		return 0, 0, false
	}
	return float64(v) / 1000, float64(int32(u32(t.data, t.lon+4*i))) / 1000, true
}

// Place returns the place with number i, 0 to Len()-1. Its texts are parts of the table, not
// copies.
func (t *Table) Place(i int) Place {
	r := t.Row(i)
	p := Place{Name: t.cut(t.nameText, t.nameEnd, i),
		Admin2: t.cut(t.secondText, t.secondEnd, int(u16(t.data, t.second+2*i))), Rank: r.Rank,
		Population: r.Population}
	p.Country, p.Admin1 = t.Region(r.Region)
	p.Lat, p.Lon, p.Located = t.Point(i)
	return p
}

// cut returns text i of those that begin at from and whose ends are in a column.
func (t *Table) cut(from, ends, i int) string {
	begin := 0
	if i > 0 {
		begin = int(u32(t.data, ends+4*(i-1)))
	}
	return t.data[from+begin : from+int(u32(t.data, ends+4*i))]
}

// Match is a place with a given name.
type Match struct {
	Number  int
	Alias   bool // the name is not its main one
	Spelled bool // with the accents that were asked for
}

// Find lists the places with a name, with any accents. The table stores hashes of names, not
// names. 64 bits do not collide by chance among so few names. A deliberate collision only
// mistakes one village for another.
func (t *Table) Find(name string) []Match {
	h := hash(Fold(name))
	i := sort.Search(t.names, func(i int) bool { return u64(t.data, t.hash+8*i) >= h })
	if i == t.names || u64(t.data, t.hash+8*i) != h {
		return nil
	}
	spelled := spellingOf(name, h)
	var out []Match
	for ; i < t.names && u64(t.data, t.hash+8*i) == h; i++ {
		p := u32(t.data, t.place+4*i)
		out = append(out, Match{Number: int(p &^ aliasBit), Alias: p&aliasBit != 0,
			Spelled: u16(t.data, t.spelling+2*i) == spelled})
	}
	return out
}

// hash returns the hash under which a folded name is stored.
func hash(folded string) uint64 { return xxhash.Sum64String(folded) }

// spellingOf returns the spelling of a name whose folded form has that hash.
func spellingOf(name string, folded uint64) uint16 {
	if ascii(name) {
		return uint16(folded)
	}
	return uint16(hash(Spell(name)))
}

// u16, u32 and u64 read a little-endian number at byte i. They panic beyond the end.
func u16(s string, i int) uint16 {
	s = s[i : i+2]
	return uint16(s[0]) | uint16(s[1])<<8
}

func u32(s string, i int) uint32 {
	s = s[i : i+4]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

func u64(s string, i int) uint64 { return uint64(u32(s, i)) | uint64(u32(s, i+4))<<32 }
