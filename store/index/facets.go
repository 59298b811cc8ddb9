package index

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/blevesearch/bleve/v2/analysis"
	index "github.com/blevesearch/bleve_index_api"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/index/words"
)

// The fields for the results of the judges.
const (
	fieldPeriod  = "period"  // days, as value: one for each interval
	fieldSpot    = "spot"    // coordinates of its place, as value
	fieldPlace   = "place"   // the folded name of its place, and its country code
	fieldVerdict = "verdict" // in, out, undecided
)

// Near is a circle on the earth.
type Near struct {
	At partition.Point
	Km float64 // radius
}

// Facets are the parts of a Query about the judges' results for a record.
type Facets struct {
	Place   string           // its name as in the gazetteer, or a country code; "" = any
	Near    *Near            // only records whose place is in the circle; nil = any
	Scope   []store.Interval // only records about one of these days; nil = any
	Verdict string           // in, out, undecided; "" = any
}

// addFacets adds the fields for the judges' results to a document.
func addFacets(a analysis.Analyzer, r *store.Record, word, value func(field, term string)) {
	for _, i := range r.Period[:min(len(r.Period), store.MaxPeriod)] {
		if from, to, ok := i.Days(); ok {
			value(fieldPeriod, daysTerm(from, to))
		}
	}
	if p := r.Place; p != nil {
		word(fieldPlace, placeTerm(a, p.Name))
		if country := strings.ToLower(p.Country); country != placeTerm(a, p.Name) {
			word(fieldPlace, country)
		}
		if at := (partition.Point{Lat: p.Lat, Lon: p.Lon}); at.Valid() {
			value(fieldSpot, spotTerm(at))
		}
	}
	if v := r.VerdictWord(); v != "" {
		word(fieldVerdict, words.Clip(v, 32))
	}
}

// Verdicts returns how many accounts of slices have each verdict: in, out, undecided. A verdict
// that no account has is not in the result.
func (ix *Index) Verdicts(ctx context.Context, sls []partition.Slice) (map[string]int64, error) {
	out := map[string]int64{}
	if len(sls) == 0 {
		return out, nil
	}
	err := ix.read(func(r index.IndexReader) error {
		q, _ := ix.whole(Query{Slices: sls})
		f, err := newFilter(r, q)
		if err != nil {
			return err
		}
		for _, word := range [...]string{"in", "out", "undecided"} {
			n, err := frequency(ctx, r, fieldVerdict, word, f)
			if err != nil {
				return err
			}
			if n > 0 {
				out[word] = int64(n)
			}
		}
		return nil
	})
	return out, err
}

// maxLanguages is how many names of languages Languages reads; pages may claim any name.
const maxLanguages = 1024

// Languages returns the number of documents of the index, of all slices, by language. A document
// with a known variety of a language counts only for that variety.
func (ix *Index) Languages() (map[string]int64, error) {
	out := map[string]int64{}
	err := ix.read(func(r index.IndexReader) (err error) {
		dict, err := r.FieldDict(fieldLang)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, dict.Close()) }()
		for range maxLanguages {
			e, err := dict.Next()
			if err != nil || e == nil {
				return err
			}
			c, err := openCursor(context.Background(), r, fieldLang, e.Term, false)
			if err != nil {
				return err
			}
			n := int64(c.r.Count())
			if err := c.close(); err != nil {
				return err
			}
			out[e.Term] += n
			if i := strings.LastIndexByte(e.Term, '-'); i > 0 {
				out[e.Term[:i]] -= n
			}
		}
		return nil
	})
	for lang, n := range out {
		if n <= 0 {
			delete(out, lang)
		}
	}
	return out, err
}

// placeTerm folds a name as words are folded, with one space between words.
func placeTerm(a analysis.Analyzer, name string) string {
	var all []string
	for _, t := range termsOf(a, name) {
		all = append(all, t.word)
	}
	return words.Clip(strings.Join(all, " "), 128)
}

// placeWish returns the term that a query for a place looks for, or "" for any place. A name
// without a letter matches no place.
func placeWish(a analysis.Analyzer, name string) string {
	if name == "" {
		return ""
	}
	return cmp.Or(placeTerm(a, name), "?")
}

// daysTerm encodes two days in 16 hex digits.
func daysTerm(from, to int32) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(from))
	return hex.EncodeToString(binary.BigEndian.AppendUint32(b, uint32(to)))
}

// spotTerm encodes a point, to about 10 m, in 16 hex digits.
func spotTerm(p partition.Point) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(int32(math.Round(p.Lat*1e4))))
	return hex.EncodeToString(binary.BigEndian.AppendUint32(b, uint32(int32(math.Round(p.Lon*1e4)))))
}

// pairOf is the inverse of daysTerm and spotTerm.
func pairOf(term []byte) (a, b int32, ok bool) {
	var raw [8]byte
	if n, err := hex.Decode(raw[:], term[:min(len(term), 16)]); err != nil || n != 8 {
		return 0, 0, false
	}
	return int32(binary.BigEndian.Uint32(raw[:])), int32(binary.BigEndian.Uint32(raw[4:])), true
}

// facetFilter filters by the values of the fields period and spot.
type facetFilter struct {
	scope [][2]int32
	near  *Near
}

// newFacetFilter returns an error for an invalid scope. fields are the fields that the filter
// reads.
func newFacetFilter(q Facets) (f facetFilter, fields []string, err error) {
	for _, i := range q.Scope {
		from, to, ok := i.Days()
		if !ok {
			return f, nil, fmt.Errorf("%w: %q to %q is no stretch of days", ErrQuery, i.Start, i.End)
		}
		f.scope = append(f.scope, [2]int32{from, to})
	}
	if f.scope != nil {
		fields = append(fields, fieldPeriod)
	}
	if f.near = q.Near; f.near != nil {
		fields = append(fields, fieldSpot)
	}
	return f, fields, nil
}

// sees evaluates one value of a document. said is the result of the document's earlier values.
func (f facetFilter) sees(field string, term []byte, said facetFound) facetFound {
	a, b, ok := pairOf(term)
	switch {
	case !ok:
	case field == fieldPeriod:
		for _, s := range f.scope {
			said.period = said.period || a <= s[1] && s[0] <= b
		}
	case field == fieldSpot && f.near != nil:
		at := partition.Point{Lat: float64(a) / 1e4, Lon: float64(b) / 1e4}
		said.spot = said.spot || kmBetween(at, f.near.At) <= f.near.Km
	}
	return said
}

// kmBetween returns the length of the great circle from a to b on a sphere of the earth's mean
// radius.
func kmBetween(a, b partition.Point) float64 {
	const earthKm, rad = 6371.0, math.Pi / 180
	lat, lon := math.Sin((b.Lat-a.Lat)*rad/2), math.Sin((b.Lon-a.Lon)*rad/2)
	h := lat*lat + math.Cos(a.Lat*rad)*math.Cos(b.Lat*rad)*lon*lon
	return 2 * earthKm * math.Asin(math.Sqrt(min(h, 1)))
}

// facetFound says which conditions of a facetFilter a document meets.
type facetFound struct{ period, spot bool }

func (f facetFilter) pass(said facetFound) bool {
	return (f.scope == nil || said.period) && (f.near == nil || said.spot)
}

// Match reports whether r has the facets q. It applies the rules of a search to one record.
func (q Facets) Match(r *store.Record) bool {
	f, _, err := newFacetFilter(q)
	if err != nil {
		return false
	}
	a := words.New().Names
	wish := placeWish(a, q.Place)
	var said facetFound
	var place, verdict bool
	addFacets(a, r, func(field, term string) {
		place = place || field == fieldPlace && term == wish
		verdict = verdict || field == fieldVerdict && term == q.Verdict
	}, func(field, term string) { said = f.sees(field, []byte(term), said) })
	return f.pass(said) && (q.Place == "" || place) && (q.Verdict == "" || verdict)
}
