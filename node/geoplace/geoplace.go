// Package geoplace places units in geo mode. A link goes to its registrar first. The registrar is
// the owner of the link's hash slice, which is stable and needs no knowledge of the place. The
// registrar is the first to fetch pages of a new unit, and judges them. It uses the domain, the
// page's declaration, the language, names in the text, and linking pages. If a page shows a place,
// the Commit of that page places the unit. The crawler then sends the unit's Keys to the geo slice
// when it meets them (package store, place.go). A unit that shows no place stays in the hash slice.
//
// A geo slice judges pages of units that have been there for RehomeAfter. If most of the last pages
// name the same other place, the slice moves the unit on, as the registrar did. The slice that
// crawls a unit decides where it goes next, so exactly one slice decides. The slices through which
// the unit came learn its new place from the answers.
package geoplace

import (
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/geo"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// The limits of re-homing. A move is costly, so many pages must agree, over a long time.
const (
	RehomePages = 16        // pages of a unit that are considered
	RehomeShare = 0.75      // share of them that must name one other slice
	RehomeAfter = time.Hour // since the unit was placed
	maxTallies  = 10_000    // units that are remembered; beyond this, some are forgotten
)

// Placer is geo mode's part of a node. It is safe for concurrent use.
type Placer struct {
	o     Options
	judge *geo.Judge
	pages int           // RehomePages
	after time.Duration // RehomeAfter

	mu      sync.Mutex
	tallies map[partition.Unit]*tally
	placed  int64 // units placed here
	rehomed int64 // of those, units that left a geo slice
}

// tally is what a Placer remembers of a unit. It is in memory only, so a restart clears it.
type tally struct {
	named   []partition.Slice // slices that its last pages named, the oldest first
	linkers map[partition.Slice]int
}

// Options are the arguments of New. All are required.
type Options struct {
	Charter partition.Charter
	Store   *db.Store
	Judge   *geo.Judge
	Logger  *slog.Logger
}

// New returns a Placer that remembers nothing yet.
func New(o Options) *Placer {
	return &Placer{o: o, judge: o.Judge, pages: RehomePages, after: RehomeAfter, tallies: map[partition.Unit]*tally{}}
}

// Has reports whether sl is one of the geo slices.
func (p *Placer) Has(sl partition.Slice) bool { return p.judge.Has(sl) }

// Slices returns the geo slices, in order.
func (p *Placer) Slices() []partition.Slice { return p.judge.Slices() }

// Place is Place of crawler.Swarm. It returns the unit's next placement, or nil if the unit stays.
func (p *Placer) Place(sl partition.Slice, rec *store.Record) *store.Placement {
	unit := p.o.Charter.Unit(rec.Key)
	if unit == "" || rec.Status != 200 {
		return nil
	}
	now, err := p.o.Store.Queue.PlacementOf(sl, rec.Key)
	if err != nil && !errors.Is(err, store.ErrNotExist) {
		p.o.Logger.Warn("placement not read", "key", rec.Key, "err", err)
		return nil
	}
	if err == nil && now.To != sl {
		return nil // the unit has already been moved
	}
	if !sl.IsHash() && time.Since(now.At) < p.after {
		return nil // the unit is too new here to move again
	}
	f := geo.Facts{Unit: unit, Host: rec.Key.Host(), Declared: rec.Declared, Language: rec.Lang, Title: rec.Title,
		Text: rec.Text}
	if sl.IsHash() {
		f.Linkers = p.linkers(unit)
	}
	j := p.judge.Place(f)
	if !sl.IsHash() && !p.agree(unit, sl, j) || j.Slice == 0 || j.Slice == sl {
		return nil
	}
	next := &store.Placement{Unit: unit, To: j.Slice, Gen: now.Gen + 1, At: time.Now().UTC(), Why: why(j)}
	p.mu.Lock()
	delete(p.tallies, unit)
	p.placed++
	if !sl.IsHash() {
		p.rehomed++
	}
	p.mu.Unlock()
	p.o.Logger.Info("placed", "unit", unit, "from", sl, "to", j.Slice, "place", j.Place, "confidence", j.Confidence)
	return next
}

// agree records what one more page of a unit says. It reports whether enough of the last pages name
// the same other slice.
func (p *Placer) agree(unit partition.Unit, sl partition.Slice, j geo.Judgement) bool {
	if j.Spread || j.Slice == 0 {
		return false // the page shows no place
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tally(unit)
	if t.named = append(t.named, j.Slice); len(t.named) > p.pages {
		t.named = t.named[1:]
	}
	same := 0
	for _, s := range t.named {
		if s == j.Slice {
			same++
		}
	}
	return j.Slice != sl && len(t.named) == p.pages && float64(same) >= RehomeShare*float64(p.pages)
}

// Linked records that a page in a geo slice links to k, a new Key.
func (p *Placer) Linked(k partition.Key, from partition.Slice) {
	unit := p.o.Charter.Unit(k)
	if unit == "" || !p.judge.Has(from) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tally(unit)
	if t.linkers == nil {
		t.linkers = map[partition.Slice]int{}
	}
	if _, ok := t.linkers[from]; ok || len(t.linkers) < maxLinkers {
		t.linkers[from]++
	}
}

const maxLinkers = 64 // slices linking to one unit that are remembered

// linkers returns how many links to unit came from each geo slice.
func (p *Placer) linkers(unit partition.Unit) map[partition.Slice]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tallies[unit]
	if t == nil {
		return nil
	}
	return maps.Clone(t.linkers)
}

// tally returns the tally of unit and forgets some other unit if there is no room. p.mu is held.
func (p *Placer) tally(unit partition.Unit) *tally {
	t := p.tallies[unit]
	if t == nil {
		for other := range p.tallies {
			if len(p.tallies) < maxTallies {
				break
			}
			delete(p.tallies, other)
		}
		t = &tally{}
		p.tallies[unit] = t
	}
	return t
}

// why encodes a judgement as JSON for storing and showing. It keeps as much of the evidence as
// fits, the strongest first.
func why(j geo.Judgement) string {
	for {
		b, err := json.Marshal(j)
		if err == nil && len(b) <= store.MaxWhy {
			return string(b)
		}
		if err != nil || len(j.Evidence) == 0 {
			return "" // a judgement always marshals
		}
		j.Evidence = j.Evidence[:len(j.Evidence)/2]
	}
}
