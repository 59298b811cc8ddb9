// Package geoplace places units in geo mode. A link goes to its registrar, whose hash slice is
// stable and needs nothing known about the place. The registrar fetches a new
// unit first and judges what it got: the domain, what the page declares, its
// language, names in its text, who links to it. Once that tells a place, the
// Commit of that page places the unit, and the crawler sends its Keys on to the
// geo slice as it comes upon them (package store, place.go). What tells no
// place stays where it is: the hash slice.
//
// A geo slice judges the pages of the units that have been there for RehomeAfter.
// When most of the last of them name the same other place, it places the unit on, as the registrar did:
// whoever crawls a unit decides where it goes next, so there is always one who
// decides. The slices behind it learn of that from its answers.
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

// The limits of re-homing, by name: what a unit costs to move, many pages must
// agree on, and for long.
const (
	RehomePages = 16        // pages of a unit that are looked back at
	RehomeShare = 0.75      // of them that must name one other slice
	RehomeAfter = time.Hour // since the unit was placed
	maxTallies  = 10_000    // units whose pages or linkers are remembered; then some are forgotten
)

// Placer is geo mode's part of a node. Safe for concurrent use.
type Placer struct {
	o     Options
	judge *geo.Judge
	pages int           // RehomePages
	after time.Duration // RehomeAfter

	mu      sync.Mutex
	tallies map[partition.Unit]*tally
	placed  int64 // units placed here
	rehomed int64 // of them, out of a geo slice
}

// tally is what is remembered of a unit, in memory only: after a restart it
// begins anew.
type tally struct {
	named   []partition.Slice // by its last pages, the oldest first
	linkers map[partition.Slice]int
}

// Options are what a Placer works with. All are required.
type Options struct {
	Charter partition.Charter
	Store   *db.Store
	Judge   *geo.Judge
	Logger  *slog.Logger
}

// New makes a Placer that remembers nothing yet.
func New(o Options) *Placer {
	return &Placer{o: o, judge: o.Judge, pages: RehomePages, after: RehomeAfter, tallies: map[partition.Unit]*tally{}}
}

// Has says whether sl is one of the geo slices.
func (p *Placer) Has(sl partition.Slice) bool { return p.judge.Has(sl) }

// Slices lists the geo slices, in order.
func (p *Placer) Slices() []partition.Slice { return p.judge.Slices() }

// Place is crawler.Options.Place.
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
		return nil // it is on its way already
	}
	if !sl.IsHash() && time.Since(now.At) < p.after {
		return nil // whatever it says, the unit stays for now
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

// agree takes note of what one more page of a unit says and answers whether
// most of them name the same other slice.
func (p *Placer) agree(unit partition.Unit, sl partition.Slice, j geo.Judgement) bool {
	if j.Spread || j.Slice == 0 {
		return false // it tells no place
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

// Linked takes note that a page in a geo slice links to k, which is new.
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

const maxLinkers = 64 // slices that link to one unit, as remembered

func (p *Placer) linkers(unit partition.Unit) map[partition.Slice]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tallies[unit]
	if t == nil {
		return nil
	}
	return maps.Clone(t.linkers)
}

// tally makes room by forgetting any other unit. p.mu is held.
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

// why is a judgement as it is kept and shown: as much of the evidence, the
// strongest first, as there is room for.
func why(j geo.Judgement) string {
	for {
		b, err := json.Marshal(j)
		if err == nil && len(b) <= store.MaxWhy {
			return string(b)
		}
		if err != nil || len(j.Evidence) == 0 {
			return "" // nothing in it can fail to marshal
		}
		j.Evidence = j.Evidence[:len(j.Evidence)/2]
	}
}
