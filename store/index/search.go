package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	index "github.com/blevesearch/bleve_index_api"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Hit is one record found.
type Hit struct {
	Key       partition.Key   `json:"key"`
	Post      string          `json:"post,omitempty"` // the URI, if it is a post of Key
	Slice     partition.Slice `json:"-"`              // the slice of the record
	Score     float64         `json:"score"`
	Kind      string          `json:"kind"`
	Title     string          `json:"title"`
	Snippet   string          `json:"snippet"` // plain text around the words, one line
	Lang      string          `json:"lang,omitempty"`
	Place     *store.Place    `json:"place,omitempty"`
	Time      time.Time       `json:"time"` // published, else fetched
	Peer      string          `json:"peer"`
	FetchedAt time.Time       `json:"fetched_at"`

	Period  []store.Interval `json:"period,omitempty"`
	Verdict string           `json:"verdict,omitempty"`
	Beside  []byte           `json:"-"` // see Query.Beside
}

// Compare orders hits as in an answer: the higher score first, ties by Key, then Post.
func (h Hit) Compare(o Hit) int {
	return cmp.Or(cmp.Compare(o.Score, h.Score), cmp.Compare(h.Key, o.Key), cmp.Compare(h.Post, o.Post))
}

// Result is the answer to a query.
type Result struct {
	Hits    []Hit             // in order of Compare
	Total   uint64            // the number of all documents found
	Missing []partition.Slice // as in Stats
}

// Check returns ErrQuery if text is over a limit of a query. It waits for nothing.
func (ix *Index) Check(text string) error {
	_, err := parse(ix.words.Queries, text)
	return err
}

// Statistics returns the Stats of q's words over the documents of q.Slices. A query to several
// peers asks for them in its first round (I8).
func (ix *Index) Statistics(ctx context.Context, q Query) (Stats, error) {
	p, err := parse(ix.words.Queries, q.Text)
	if err != nil {
		return Stats{}, err
	}
	var st Stats
	err = ix.read(func(r index.IndexReader) error {
		q, missing := ix.whole(q)
		st, err = ix.statistics(ctx, r, ix.narrow(q.Slices), p)
		st.Missing = missing
		return err
	})
	return st, err
}

// read calls fn with one state of the index. Several calls may run at once.
func (ix *Index) read(fn func(index.IndexReader) error) error {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	if ix.scorch == nil {
		return ErrClosed
	}
	r, err := ix.scorch.Reader()
	if err == nil {
		err = errors.Join(fn(r), r.Close())
	}
	if err != nil {
		return fmt.Errorf("index: search: %w", err)
	}
	return nil
}

// whole returns q for the slices that are indexed completely, and the other slices. The caller
// holds mu and took the searched state of the index under it.
func (ix *Index) whole(q Query) (Query, []partition.Slice) {
	missing := ix.lacking(q.Slices)
	if len(missing) > 0 {
		there := make([]partition.Slice, 0, len(q.Slices))
		for _, sl := range q.Slices {
			if ix.have[sl] {
				there = append(there, sl)
			}
		}
		q.Slices = there
	}
	return q, missing
}

// narrow returns sls, or nil when the index has no documents of other slices. nil is the usual
// case, because a peer is asked for the slices that it owns. Then the slice of a document need not
// be looked up. The caller holds mu as for whole.
func (ix *Index) narrow(sls []partition.Slice) []partition.Slice {
	if len(sls) < len(ix.docs) {
		return sls
	}
	asked := make(map[partition.Slice]bool, len(sls))
	for _, sl := range sls {
		asked[sl] = true
	}
	for sl := range ix.docs {
		if !asked[sl] {
			return sls
		}
	}
	return nil
}

// statistics returns the Stats of the words of p over the documents of sls.
func (ix *Index) statistics(ctx context.Context, r index.IndexReader, sls []partition.Slice, p plan) (Stats, error) {
	st := Stats{DF: make(map[string]uint64, len(p.terms))}
	f, err := newFilter(r, Query{Slices: sls})
	if err != nil {
		return st, err
	}
	if sls == nil {
		st.Docs, err = r.DocCount()
	} else {
		for sl := range f.slices {
			st.Docs += ix.docs[sl]
		}
	}
	for _, w := range p.terms {
		if err != nil {
			return st, err
		}
		st.DF[w], err = frequency(ctx, r, fieldText, w, f)
	}
	return st, err
}

// frequency returns how many documents that pass the filter contain w in a field.
func frequency(ctx context.Context, r index.IndexReader, field, w string, f *filter) (n uint64, err error) {
	c, err := openCursor(ctx, r, field, w, false)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if f.none() {
		return c.r.Count(), nil
	}
	for i := 0; c.ok; i++ {
		if i%1024 == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		ok, err := f.pass(c.doc.ID)
		if err != nil {
			return 0, err
		}
		if ok {
			n++
		}
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// Search returns the hits of q. st are the merged Stats of all peers that q is sent to; with nil,
// this index's own are used. Cost: the documents that contain the rarest word.
func (ix *Index) Search(ctx context.Context, q Query, st *Stats) (Result, error) {
	p, err := parse(ix.words.Queries, q.Text)
	if err != nil {
		return Result{}, err
	}
	offset, limit, err := q.window()
	if err != nil {
		return Result{}, err
	}
	q.Place = placeWish(ix.words.Names, q.Place)
	var found []candidate
	var said [][]passage
	var total uint64
	var missing []partition.Slice
	err = ix.read(func(r index.IndexReader) error {
		q, missing = ix.whole(q)
		q.Slices = ix.narrow(q.Slices)
		if st == nil {
			own, err := ix.statistics(ctx, r, q.Slices, p)
			if err != nil {
				return err
			}
			st = &own
		}
		best := newTop(offset+limit, r)
		if q.After != nil {
			best.after = &candidate{score: q.After.Score, doc: docName(q.After.Key, q.After.Post)}
		}
		if err := collect(ctx, r, q, p, *st, best); err != nil {
			return err
		}
		found, total = best.sorted(), best.total
		found = found[min(offset, len(found)):]
		said, err = passages(ctx, r, p, found)
		return err
	})
	if err != nil {
		return Result{}, err
	}
	res := Result{Total: total, Missing: missing}
	for i, c := range found {
		h, err := ix.hit(c, said[i], q.Beside)
		if errors.Is(err, store.ErrNotExist) {
			res.Total-- // deleted since it was indexed
			continue
		}
		if err != nil {
			return Result{}, fmt.Errorf("index: search: %w", err)
		}
		res.Hits = append(res.Hits, h)
	}
	return res, nil
}

// hit builds the Hit of a candidate from the store's record.
func (ix *Index) hit(c candidate, said []passage, beside func(*store.Record) []byte) (Hit, error) {
	r, sl, err := ix.find(c.doc)
	if err == nil && r.Deleted { // since it was indexed
		err = store.ErrNotExist
	}
	if err != nil {
		return Hit{}, err
	}
	h := Hit{
		Key: r.Key, Post: r.Post, Slice: sl, Score: c.score, Kind: r.Kind, Lang: r.Lang,
		Title: r.Title, Snippet: snippet(r.Text, said), Place: r.Place, Period: r.Period, Verdict: r.VerdictWord(),
		Time: timeOf(&r).UTC(), Peer: r.Peer, FetchedAt: r.FetchedAt,
	}
	if beside != nil {
		h.Beside = beside(&r)
	}
	return h, nil
}

// filter decides by the values stored for each document.
type filter struct {
	values       index.DocValueReader
	slices       map[partition.Slice]bool // nil = all
	since, until string                   // "" = any
	facets       facetFilter
}

// newFilter returns the filter for the slices, times and facets of q.
func newFilter(r index.IndexReader, q Query) (*filter, error) {
	f := &filter{}
	if q.Slices != nil {
		f.slices = make(map[partition.Slice]bool, len(q.Slices))
		for _, sl := range q.Slices {
			f.slices[sl] = true
		}
	}
	if !q.Since.IsZero() {
		f.since = sortTime(q.Since)
	}
	if !q.Until.IsZero() {
		f.until = sortTime(q.Until)
	}
	var fields []string
	if f.slices != nil {
		fields = append(fields, fieldSlice)
	}
	if f.since != "" || f.until != "" {
		fields = append(fields, fieldTime)
	}
	facets, more, err := newFacetFilter(q.Facets)
	if err != nil {
		return nil, err
	}
	f.facets = facets
	f.values, err = r.DocValueReader(append(fields, more...))
	return f, err
}

func (f *filter) none() bool {
	return f.slices == nil && f.since == "" && f.until == "" && f.facets.scope == nil && f.facets.near == nil
}

// pass reports whether a document meets all conditions of f.
func (f *filter) pass(id index.IndexInternalID) (bool, error) {
	if f.none() {
		return true, nil
	}
	var sl partition.Slice
	var at string
	var said facetFound
	err := f.values.VisitDocValues(id, func(field string, term []byte) {
		switch field {
		case fieldSlice:
			sl = parseSlice(term)
		case fieldTime:
			at = string(term)
		default:
			said = f.facets.sees(field, term, said)
		}
	})
	ok := f.facets.pass(said) && (f.slices == nil || f.slices[sl]) && (f.since == "" || at >= f.since) &&
		(f.until == "" || at < f.until)
	return ok, err
}

// countSlices counts the documents of each slice. Only Open calls it; later, each batch updates the
// counts.
func countSlices(r index.IndexReader) (docs map[partition.Slice]uint64, err error) {
	docs = make(map[partition.Slice]uint64)
	dict, err := r.FieldDict(fieldSlice)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dict.Close()) }()
	for {
		e, err := dict.Next()
		if err != nil || e == nil {
			return docs, err
		}
		sl, err := strconv.ParseUint(e.Term, 16, 64)
		if err != nil {
			return nil, fmt.Errorf("slice %q: %w", e.Term, err)
		}
		tr, err := r.TermFieldReader(context.Background(), []byte(e.Term), fieldSlice, false, false, false)
		if err != nil {
			return nil, err
		}
		docs[partition.Slice(sl)] = tr.Count()
		if err := tr.Close(); err != nil {
			return nil, err
		}
	}
}
