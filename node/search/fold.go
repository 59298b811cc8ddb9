package search

import (
	"hash/maphash"
	"math"

	lru "github.com/hashicorp/golang-lru"

	"github.com/echo-node/echo-node/crawler/judge/duplicates"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/store"
)

// Folding of copies inside an answer. The peers that have the hits send a print
// of each, the asked peer compares them: what each other hit says in the same
// words is listed under the best of them. Only hits are compared with each other,
// so two peers need not know of each other's pages.

const (
	maxFolded        = 1000 // hits of one answer that are compared
	fingerprintUnits = 256  // words of a text that are compared one by one
	maxFoldAhead     = 200  // hits looked at beyond those asked for
	maxFingerprints  = 4096 // kept, of some 2 KB at most each
)

// foldAhead is how many hits more than asked for are looked at, so that an answer
// is full although copies are folded.
func foldAhead(limit int) int { return min(2*limit, maxFoldAhead) }

// fingerprints are what tells copies of hits, of those that were shown last. Safe for concurrent use.
type fingerprints struct {
	last *lru.Cache
	seed maphash.Seed // nobody else can make two texts with one hash
}

// fingerprintID is all that printOf looks at.
type fingerprintID struct {
	text                     uint64 // its hash
	kind                     string
	copies, deleted, noindex bool
	published                int64
}

func newFingerprints() fingerprints {
	c, err := lru.New(maxFingerprints)
	if err != nil {
		panic(err) // a size that is none
	}
	return fingerprints{c, maphash.MakeSeed()}
}

// of is what tells copies of a hit with that record; nil for what is nobody's copy.
func (c fingerprints) of(r *store.Record) []byte {
	made := fingerprintID{
		text: maphash.String(c.seed, r.Text), kind: r.Kind,
		copies: r.Copies != "", deleted: r.Deleted, noindex: r.NoIndex,
		published: math.MaxInt64, // as where none is said
	}
	if r.PublishedAt != nil {
		made.published = r.PublishedAt.Unix()
	}
	if b, ok := c.last.Get(made); ok {
		return b.([]byte)
	}
	var b []byte
	if p, why := fingerprintOf(r); why == "" {
		p.Units = p.Units[:min(len(p.Units), fingerprintUnits)]
		b = p.Append(nil)
	}
	c.last.Add(made, b)
	return b
}

// fold puts hits that are copies of a better one under it, and gives limit of
// what is left, from the hit at offset on, and the offset of the next. hits are all
// from the first: each is compared with those before it alone, so a later page of
// an answer folds as if it had been asked for with the first.
func fold(hits []api.Hit, offset, limit int) (out []api.Hit, next int) {
	var heads []head
	next = len(hits)
	for i, h := range hits {
		p, ok := decodeFingerprint(h, i)
		at, m := -1, duplicates.Match{}
		if ok {
			at, m = sameAs(heads, p)
		}
		switch {
		case at >= 0 && heads[at].out >= 0:
			to := &out[heads[at].out]
			to.Copies = append(to.Copies, api.Copy{Key: h.Key, Post: h.Post, Title: h.Title, Score: h.Score,
				Peer: h.Peer, FetchedAt: h.FetchedAt,
				Reason: string(m.Reason), Distance: m.Distance})
			continue
		case at >= 0:
			continue // of a hit of an earlier page, listed there if it was within foldAhead
		case i >= offset && len(out) == limit: // what follows may still be copies of what is given
			next = min(next, i)
			continue
		}
		first := head{fingerprint: p, out: -1}
		if i >= offset {
			first.out = len(out)
			out = append(out, h)
		}
		if ok {
			heads = append(heads, first)
		}
	}
	return out, next
}

// head is a hit that others may be copies of; out is its place in the answer, -1 on
// an earlier page.
type head struct {
	fingerprint duplicates.Print
	out         int
}

func decodeFingerprint(h api.Hit, i int) (duplicates.Print, bool) {
	if len(h.Print) == 0 || i >= maxFolded {
		return duplicates.Print{}, false
	}
	p, err := duplicates.DecodePrint(h.Print) // of another version: it is told from nothing
	return p, err == nil
}

// sameAs is the first of heads that p is a copy of, -1 for none. Of long texts only
// the first words are at hand, so the fingerprints of all words must be near too.
func sameAs(heads []head, p duplicates.Print) (int, duplicates.Match) {
	for i := range heads {
		h := &heads[i].fingerprint
		m, ok := duplicates.Options{}.Compare(*h, p)
		long := len(h.Units) >= fingerprintUnits || len(p.Units) >= fingerprintUnits
		if ok && (!long || duplicates.Distance(h.Bits, p.Bits) <= duplicates.DefaultDistance) {
			return i, m
		}
	}
	return -1, duplicates.Match{}
}
