package search

import (
	"hash/maphash"
	"math"

	lru "github.com/hashicorp/golang-lru"

	"github.com/echo-node/echo-node/crawler/judge/duplicates"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/store"
)

// Folding of copies inside an answer. The peers that have the hits send a fingerprint of each, and
// the peer that runs the query compares them. A hit that says the same as a better one is listed
// under it. Only hits are compared with each other, so two peers need not know each other's pages.

const (
	maxFolded        = 1000 // hits of one answer that are compared
	fingerprintUnits = 256  // words of a text that are compared one by one
	maxFoldAhead     = 200  // additional hits to look at
	maxFingerprints  = 4096 // cached, each of at most about 2 KB
)

// foldAhead is the number of additional hits to look at, so that an answer is full although copies
// are folded.
func foldAhead(limit int) int { return min(2*limit, maxFoldAhead) }

// fingerprints caches the fingerprints of recently shown hits. It is safe for concurrent use.
type fingerprints struct {
	last *lru.Cache
	seed maphash.Seed // random, so that nobody else can make two texts with the same hash
}

// fingerprintID contains all that fingerprintOf reads.
type fingerprintID struct {
	text                     uint64 // its hash
	kind                     string
	copies, deleted, noindex bool
	published                int64
}

func newFingerprints() fingerprints {
	c, err := lru.New(maxFingerprints)
	if err != nil {
		panic(err) // an invalid size
	}
	return fingerprints{c, maphash.MakeSeed()}
}

// of returns the encoded fingerprint of a hit with record r, or nil when r cannot be a copy.
func (c fingerprints) of(r *store.Record) []byte {
	made := fingerprintID{
		text: maphash.String(c.seed, r.Text), kind: r.Kind,
		copies: r.Copies != "", deleted: r.Deleted, noindex: r.NoIndex,
		published: math.MaxInt64, // the value when r has no PublishedAt
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

// fold lists each hit that is a copy of a better one under that one. It returns limit of the
// remaining hits, beginning at offset, and the offset of the next page. hits must begin with the
// first hit of the query. Each is compared only with those before it, so a later page folds the
// same way as if it had been requested together with the first.
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
			continue // a copy of a hit of an earlier page; listed there if it was within foldAhead
		case i >= offset && len(out) == limit: // a copy of a hit of an earlier page, listed there
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

// head is a hit that others may be copies of. out is its place in the answer, or -1 when it is on
// an earlier page.
type head struct {
	fingerprint duplicates.Fingerprint
	out         int
}

func decodeFingerprint(h api.Hit, i int) (duplicates.Fingerprint, bool) {
	if len(h.Print) == 0 || i >= maxFolded {
		return duplicates.Fingerprint{}, false
	}
	p, err := duplicates.DecodeFingerprint(h.Print) // a fingerprint of another version matches nothing
	return p, err == nil
}

// sameAs returns the first of heads that p is a copy of, or -1. Of long texts only the first words
// are available, so the SimHash bits of all words must be near too.
func sameAs(heads []head, p duplicates.Fingerprint) (int, duplicates.Match) {
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
