package service

import (
	"errors"
	"fmt"
	"hash/fnv"
)

// Limits bound one list or one reading. The zero value is the default.
type Limits struct {
	Pages int // requests that return a page; default 25,000, enough for two million followers
	Items int // new items; default 2,000,000
	Empty int // pages in a row without new items that still have a cursor; default 3
}

// Validate returns an error if a limit is negative.
func (l Limits) Validate() error {
	if l.Pages < 0 || l.Items < 0 || l.Empty < 0 {
		return fmt.Errorf("service: negative limit: Pages %d, Items %d, Empty %d", l.Pages, l.Items, l.Empty)
	}
	return nil
}

// WithDefaults replaces zeros by defaults.
func (l Limits) WithDefaults() Limits {
	for _, d := range [...]struct {
		p *int
		v int
	}{{&l.Pages, 25_000}, {&l.Items, 2_000_000}, {&l.Empty, 3}} {
		if *d.p == 0 {
			*d.p = d.v
		}
	}
	return l
}

// Listing is the progress of a list or a reading.
type Listing struct {
	Complete bool
	Why      Word  // why it is incomplete; "" = it is complete, or goes on
	Claimed  int64 // by the profile, -1 = unknown
	Seen     int64 // distinct items delivered
	Pages    int   // requests that returned a page
	Strange  int   // elements that could not be read
}

// Trail follows a chain of cursors and pages, and decides when the chain ends. It is pure, and its
// memory does not grow with the list:
//
//   - Brent's method finds a repeated cursor or page (R. P. Brent, "An improved Monte
//     Carlo factorization algorithm", BIT 20, 1980, section 3). Each one is compared
//     with the previous one and with a landmark, which moves at every power of two. A
//     ring of λ pages that begins after μ of them is found at latest 2 max(μ, λ) + λ
//     pages later.
//   - An item is new if it is not among the last maxKnown items. This detects a ring
//     of fewer items, in any order.
//
// The fields are exported for encoding. Known is not encoded. So after a resume, an item that was
// fetched long ago may count as new. The caller must store items by key.
type Trail struct {
	Cursor   string `json:"cursor,omitempty"` // of the next request, "" = the first
	Mark     string `json:"mark,omitempty"`   // the landmark's cursor
	MarkPage uint64 `json:"markPage,omitempty"`
	LastPage uint64 `json:"lastPage,omitempty"`
	Power    int64  `json:"power,omitempty"`
	Steps    int64  `json:"steps,omitempty"` // since the landmark
	Pages    int    `json:"pages,omitempty"`
	Seen     int64  `json:"seen,omitempty"`
	Empty    int    `json:"empty,omitempty"` // pages in a row without anything new
	Strange  int    `json:"strange,omitempty"`

	Known Known `json:"-"`
}

// MaxCursor is the longest usable cursor, in bytes.
const MaxCursor = 2 << 10

// maxKnown is how many of the last items are remembered.
const maxKnown = 20_000

// Known is a set of the last ids; it drops the oldest first. It has two halves and drops the older
// half when the newer one is full. So it remembers maxKnown/2 to maxKnown ids.
type Known struct{ young, old map[uint64]bool }

// Has reports whether id is in the set.
func (k *Known) Has(id string) bool { h := digest(id); return k.young[h] || k.old[h] }

// Add adds id and reports whether it is new.
func (k *Known) Add(id string) bool {
	if k.Has(id) {
		return false
	}
	if k.young == nil || len(k.young) >= maxKnown/2 {
		k.young, k.old = make(map[uint64]bool, 64), k.young
	}
	k.young[digest(id)] = true
	return true
}

func digest(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p)) // never fails
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// Took applies the page for t.Cursor: the ids of its items, and the next cursor, "" = the list
// ends. fresh reports which items are new. stop is the reason for an early end, "" = none. over
// reports whether the walk has ended.
func (t *Trail) Took(ids []string, next string, lim Limits) (fresh []bool, stop Word, over bool) {
	t.Pages++
	fresh = make([]bool, len(ids))
	news := 0
	for i, id := range ids {
		if fresh[i] = t.Known.Add(id); fresh[i] {
			news++
		}
	}
	t.Seen += int64(news)
	page := uint64(0)
	if len(ids) > 0 {
		page = digest(ids...)
	}
	if t.Empty++; news > 0 {
		t.Empty = 0
	}
	switch {
	case len(ids) > 0 && (page == t.LastPage || page == t.MarkPage):
		return fresh, CursorRepeats, true
	case next == "":
		return fresh, "", true
	case next == t.Cursor || next == t.Mark:
		return fresh, CursorRepeats, true
	case t.Empty > lim.Empty && len(ids) > 0:
		return fresh, NothingNew, true
	case t.Empty > lim.Empty:
		return fresh, EmptyPages, true
	case t.Pages >= lim.Pages:
		return fresh, MaxPages, true
	case t.Seen >= int64(lim.Items):
		return fresh, MaxItems, true
	}
	if page != 0 {
		t.LastPage = page
	}
	if t.Steps++; t.Steps >= t.Power { // move the landmark here
		t.Mark, t.MarkPage, t.Steps = next, t.LastPage, 0
		t.Power = max(2*t.Power, 1)
	}
	t.Cursor = next
	return fresh, "", false
}

// Valid returns an error if this package cannot have written t.
func (t *Trail) Valid() error {
	if t.Power < 0 || t.Steps < 0 || t.Pages < 0 || t.Seen < 0 || t.Empty < 0 || t.Strange < 0 ||
		len(t.Cursor) > MaxCursor || len(t.Mark) > MaxCursor {
		return errors.New("out of range")
	}
	return nil
}
