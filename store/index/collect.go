package index

import (
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"slices"

	index "github.com/blevesearch/bleve_index_api"
)

// cursor iterates over the documents that contain one word in one field.
type cursor struct {
	r   index.TermFieldReader
	doc *index.TermFieldDoc
	num uint64 // of doc
	ok  bool   // whether there is a doc
}

// openCursor returns a cursor at the first document. Only text and title have frequencies.
func openCursor(ctx context.Context, r index.IndexReader, field, term string, positions bool) (*cursor, error) {
	freq := field == fieldText || field == fieldTitle
	tr, err := r.TermFieldReader(ctx, []byte(term), field, freq, freq, positions)
	if err != nil {
		return nil, err
	}
	c := &cursor{r: tr, doc: &index.TermFieldDoc{}}
	if err := c.next(); err != nil {
		return nil, errors.Join(err, tr.Close())
	}
	return c, nil
}

func (c *cursor) set(d *index.TermFieldDoc, err error) error {
	if c.ok = err == nil && d != nil; !c.ok {
		return err
	}
	c.doc = d
	c.num, err = d.ID.Value()
	return err
}

func (c *cursor) next() error { return c.set(c.r.Next(c.doc.Reset())) }

// seek moves to num or the next document after it. It never moves back.
func (c *cursor) seek(num uint64) error {
	if !c.ok || c.num >= num {
		return nil
	}
	id := binary.BigEndian.AppendUint64(nil, num)
	return c.set(c.r.Advance(id, c.doc.Reset()))
}

func (c *cursor) close() error { return c.r.Close() }

// search is one running query on one state of the index.
type search struct {
	ctx    context.Context
	must   []*cursor // a hit must be in all of them; the rarest first
	words  []scored
	exact  []phrase
	not    []phrase
	filter *filter
	open   []*cursor
}

// scored is a word that adds to the score.
type scored struct {
	text, title *cursor
	weight      float64
}

// phrase is a sequence of words. A phrase of one word needs no positions.
type phrase []placed

// placed is a word of a phrase, at places after the first word.
type placed struct {
	*cursor
	at uint64
}

// collect adds every document that q finds to best.
func collect(ctx context.Context, r index.IndexReader, q Query, p plan, st Stats, best *top) (err error) {
	s := &search{ctx: ctx}
	defer func() {
		for _, c := range s.open {
			err = errors.Join(err, c.close())
		}
	}()
	if err := s.prepare(r, q, p, st); err != nil {
		return err
	}
	if len(s.must) == 0 {
		return s.all(r, best)
	}
	lead := s.must[0]
	for i := 0; lead.ok; i++ {
		if i%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		num, all := lead.num, true
		for _, c := range s.must[1:] {
			if err := c.seek(num); err != nil {
				return err
			}
			if !c.ok {
				return nil
			}
			if c.num != num {
				num, all = c.num, false
				break
			}
		}
		if !all {
			err = lead.seek(num)
		} else if err = s.take(num, lead.doc.ID, best); err == nil {
			err = lead.next()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// all handles a query without a word to find: it considers every document.
func (s *search) all(r index.IndexReader, best *top) error {
	ids, err := r.DocIDReaderAll()
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		id, err := ids.Next()
		if err != nil || id == nil {
			return errors.Join(err, ids.Close())
		}
		if i%1024 == 0 && s.ctx.Err() != nil {
			return errors.Join(s.ctx.Err(), ids.Close())
		}
		num, err := id.Value()
		if err == nil {
			err = s.take(num, id, best)
		}
		if err != nil {
			return errors.Join(err, ids.Close())
		}
	}
}

func (s *search) cursor(r index.IndexReader, field, term string, positions bool) (*cursor, error) {
	c, err := openCursor(s.ctx, r, field, term, positions)
	if err == nil {
		s.open = append(s.open, c)
	}
	return c, err
}

// prepare opens the cursors and the filter of a search.
func (s *search) prepare(r index.IndexReader, q Query, p plan, st Stats) (err error) {
	if s.filter, err = newFilter(r, q); err != nil {
		return err
	}
	for _, w := range p.terms {
		var sc scored
		if sc.text, err = s.cursor(r, fieldText, w, false); err != nil {
			return err
		}
		if sc.title, err = s.cursor(r, fieldTitle, w, false); err != nil {
			return err
		}
		sc.weight = st.weight(w)
		s.words = append(s.words, sc)
		s.must = append(s.must, sc.text)
	}
	for _, f := range []struct{ field, term string }{{fieldKind, q.Kind}, {fieldLang, langTerm(q.Lang)},
		{fieldSite, q.Site}, {fieldPlace, q.Place}, {fieldVerdict, q.Verdict}} {
		if f.term == "" {
			continue
		}
		c, err := s.cursor(r, f.field, f.term, false)
		if err != nil {
			return err
		}
		s.must = append(s.must, c)
	}
	slices.SortStableFunc(s.must,
		func(a, b *cursor) int { return int(min(a.r.Count(), 1<<31)) - int(min(b.r.Count(), 1<<31)) })
	if s.exact, err = s.phrases(r, p.must, 2); err != nil {
		return err
	}
	s.not, err = s.phrases(r, p.not, 1)
	return err
}

// phrases opens cursors for the lists of at least least words.
func (s *search) phrases(r index.IndexReader, lists [][]term, least int) ([]phrase, error) {
	var out []phrase
	for _, words := range lists {
		if len(words) < least {
			continue
		}
		ph, err := s.phrase(r, words, len(words) > 1)
		if err != nil {
			return nil, err
		}
		out = append(out, ph)
	}
	return out, nil
}

// phrase opens the cursors of one phrase.
func (s *search) phrase(r index.IndexReader, words []term, positions bool) (ph phrase, err error) {
	for _, w := range words {
		c, err := s.cursor(r, fieldText, w.word, positions)
		if err != nil {
			return nil, err
		}
		ph = append(ph, placed{c, uint64(w.at)})
	}
	return ph, nil
}

// take checks and scores one document that has all the words.
func (s *search) take(num uint64, id index.IndexInternalID, best *top) error {
	if ok, err := s.filter.pass(id); err != nil || !ok {
		return err
	}
	for _, ph := range s.exact {
		if ok, err := ph.in(num); err != nil || !ok {
			return err
		}
	}
	for _, ph := range s.not {
		if ok, err := ph.in(num); err != nil || ok {
			return err
		}
	}
	score := 0.0
	for _, w := range s.words {
		sum := part(float64(w.text.doc.Freq), lengthOf(w.text.doc.Norm), textLength)
		if err := w.title.seek(num); err != nil {
			return err
		}
		if w.title.ok && w.title.num == num {
			sum += float64(titleWeight * part(float64(w.title.doc.Freq), lengthOf(w.title.doc.Norm), titleLength))
		}
		score += float64(w.weight * sum)
	}
	return best.add(score, num, id)
}

// in reports whether document num contains the phrase.
func (ph phrase) in(num uint64) (bool, error) {
	if ok, err := ph.seek(num); err != nil || !ok || len(ph) == 1 {
		return ok, err
	}
	return len(ph.places()) > 0, nil
}

// seek reports whether document num contains all words of the phrase.
func (ph phrase) seek(num uint64) (bool, error) {
	for _, c := range ph {
		if err := c.cursor.seek(num); err != nil {
			return false, err
		}
		if !c.ok || c.num != num {
			return false, nil
		}
	}
	return true, nil
}

// place is a position in a part of a document: the title, or the text.
type place struct{ part, pos uint64 }

// span is a range of bytes in a text.
type span struct{ from, to int }

// places returns where the phrase begins in the current document of its cursors, each with its
// range of bytes in that part. The cursors must be opened with positions and be at one document.
func (ph phrase) places() map[place]span {
	var out map[place]span
	for i, c := range ph {
		next := make(map[place]span)
		for _, v := range c.doc.Vectors {
			at, here := place{pos: v.Pos - c.at}, span{int(v.Start), int(v.End)}
			if len(v.ArrayPositions) > 0 {
				at.part = v.ArrayPositions[0]
			}
			if i == 0 {
				next[at] = here
			} else if before, ok := out[at]; ok {
				next[at] = span{before.from, max(before.to, here.to)}
			}
		}
		if out = next; len(out) == 0 {
			return nil
		}
	}
	return out
}

// candidate is a document that may be among the best.
type candidate struct {
	score float64
	doc   doc
	num   uint64 // of the document, in this state of the index
}

func (c candidate) before(o candidate) bool {
	return c.score > o.score || c.score == o.score && c.doc < o.doc
}

// top keeps the n best candidates; its heap has the worst of them first.
type top struct {
	n     int
	r     index.IndexReader
	total uint64
	after *candidate // it and candidates before it are counted but not kept
	heap  candidates
}

type candidates []candidate

func newTop(n int, r index.IndexReader) *top { return &top{n: n, r: r} }

func (h candidates) Len() int           { return len(h) }
func (h candidates) Less(i, j int) bool { return h[j].before(h[i]) }
func (h candidates) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *candidates) Push(x any)        { *h = append(*h, x.(candidate)) }
func (h *candidates) Pop() any {
	c := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return c
}

// add counts a document and keeps it if it is among the best. It looks up the names of only those
// that may be.
func (t *top) add(score float64, num uint64, id index.IndexInternalID) error {
	t.total++
	if len(t.heap) == t.n && score < t.heap[0].score || t.after != nil && score > t.after.score {
		return nil
	}
	key, err := t.r.ExternalID(id)
	if err != nil {
		return err
	}
	c := candidate{score: score, doc: doc(key), num: num}
	switch {
	case t.after != nil && !t.after.before(c):
	case len(t.heap) < t.n:
		heap.Push(&t.heap, c)
	case c.before(t.heap[0]):
		t.heap[0] = c
		heap.Fix(&t.heap, 0)
	}
	return nil
}

func (t *top) sorted() []candidate {
	out := slices.Clone(t.heap)
	slices.SortFunc(out, func(a, b candidate) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return out
}
