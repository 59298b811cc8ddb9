package node

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/geo"
	"github.com/echo-node/echo-node/store"
)

// Placement in geo mode. A link goes to its registrar, whose hash slice is
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

// The limits of re-homing, by name: what a unit costs to move, many pages must
// agree on, and for long.
const (
	RehomePages = 16        // pages of a unit that are looked back at
	RehomeShare = 0.75      // of them that must name one other slice
	RehomeAfter = time.Hour // since the unit was placed
	maxTallies  = 10_000    // units whose pages or linkers are remembered; then some are forgotten
)

// placer is geo mode's part of a node. Safe for concurrent use.
type placer struct {
	n     *Node
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

// openPlacer opens the gazetteer when the swarm is in geo mode, and lists the
// slices. Peers with another gazetteer would put units into other slices.
func (n *Node) openPlacer() ([]partition.Slice, error) {
	if n.charter.Mode != partition.ModeGeo {
		return n.charter.AllSlices(nil)
	}
	g, err := n.gazetteer()
	if err != nil {
		return nil, err
	}
	if own := g.Digest(); own != n.charter.Gazetteer {
		return nil, fmt.Errorf("the swarm %s uses gazetteer %s, this program %s", n.charter.Name, n.charter.Gazetteer,
			own)
	}
	n.placer = &placer{n: n, judge: geo.NewJudge(g, n.charter.CellLevel), pages: RehomePages, after: RehomeAfter,
		tallies: map[partition.Unit]*tally{}}
	return n.charter.AllSlices(n.placer.judge.Slices())
}

// withGazetteer is c, in geo mode with this program's gazetteer and cells of
// that level (0: the default).
func withGazetteer(c partition.Charter, level int) (partition.Charter, error) {
	if c.Mode != partition.ModeGeo {
		return c, nil
	}
	g, err := geo.Open()
	if err != nil {
		return c, err
	}
	c.CellLevel, c.Gazetteer = cmp.Or(level, geo.CellLevel), g.Digest()
	return c, nil
}

// place is crawler.Options.Place.
func (p *placer) place(sl partition.Slice, rec *store.Record) *store.Placement {
	unit := p.n.charter.Unit(rec.Key)
	if unit == "" || rec.Status != 200 {
		return nil
	}
	now, err := p.n.store.Queue.PlacementOf(sl, rec.Key)
	if err != nil && !errors.Is(err, store.ErrNotExist) {
		p.n.log.Warn("placement not read", "key", rec.Key, "err", err)
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
	p.n.log.Info("placed", "unit", unit, "from", sl, "to", j.Slice, "place", j.Place, "confidence", j.Confidence)
	return next
}

// agree takes note of what one more page of a unit says and answers whether
// most of them name the same other slice.
func (p *placer) agree(unit partition.Unit, sl partition.Slice, j geo.Judgement) bool {
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

// linked takes note that a page in a geo slice links to k, which is new.
func (p *placer) linked(k partition.Key, from partition.Slice) {
	unit := p.n.charter.Unit(k)
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

func (p *placer) linkers(unit partition.Unit) map[partition.Slice]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tallies[unit]
	if t == nil {
		return nil
	}
	return maps.Clone(t.linkers)
}

// tally makes room by forgetting any other unit. p.mu is held.
func (p *placer) tally(unit partition.Unit) *tally {
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

// target is the slice that an item is for: the one that it was placed in, or
// its hash slice.
func (n *Node) target(it store.Admission) partition.Slice {
	if it.In != 0 {
		return it.In
	}
	return n.store.SliceOf(it.Key)
}

// moved is where the unit of an item that was admitted into a geo slice has
// gone on to; nil when it is here.
func (n *Node) moved(it store.Admission) *store.Placement {
	if n.placer == nil || it.In == 0 {
		return nil
	}
	p, err := n.store.Queue.PlacementOf(it.In, it.Key)
	if err != nil || p.To == it.In || p.Gen <= it.Gen {
		return nil // what is not known now is found out with the next link
	}
	return &p
}

// learn takes the word of the owner of r.To that r's unit has gone on from
// there; it is wrong at most for that owner's own units.
func (n *Node) learn(r store.OutboxRow, to partition.Slice, gen uint64) {
	if n.placer == nil || r.To.IsHash() || !n.placer.judge.Has(to) {
		return
	}
	had, err := n.store.Queue.PlacementOf(r.Slice, r.Key)
	if err != nil || had.To != r.To || gen <= had.Gen {
		return
	}
	had.To, had.Gen = to, gen
	if err := n.store.Queue.Learn(r.Slice, r.Key, had); err != nil {
		n.log.Warn("placement not learnt", "key", r.Key, "err", err)
	}
}

// paceOf and wirePace are a Pace on the wire.
func paceOf(p *wire.Pace) (pace store.Pace, gen uint64) {
	ms := func(v uint64) time.Duration {
		return time.Duration(min(v, uint64(24*time.Hour/time.Millisecond))) * time.Millisecond
	}
	pace = store.Pace{Wait: ms(p.GetWaitMs()), BackOff: ms(p.GetBackOffMs()),
		Fetched: int64(min(p.GetFetched(), 1<<40))}
	if p.GetNextMs() > 0 {
		pace.Next = time.UnixMilli(p.GetNextMs()).UTC()
	}
	return pace, min(p.GetGen(), store.MaxGen)
}

func wirePace(a store.Admission) *wire.Pace {
	if a.In == 0 {
		return nil
	}
	w := &wire.Pace{Gen: a.Gen, WaitMs: uint64(a.Pace.Wait / time.Millisecond),
		BackOffMs: uint64(a.Pace.BackOff / time.Millisecond), Fetched: uint64(max(a.Pace.Fetched, 0))}
	if !a.Pace.Next.IsZero() {
		w.NextMs = a.Pace.Next.UnixMilli()
	}
	return w
}

// sliceOn is a slice as a message names it: 0 for the hash slice of the Key.
func sliceOn(sl partition.Slice) uint64 {
	if sl.IsHash() {
		return 0
	}
	return uint64(sl)
}

// sliceFrom reads what sliceOn wrote, of another peer: the slice that k is said
// to be in, if it can be.
func (n *Node) sliceFrom(v uint64, k partition.Key) (partition.Slice, error) {
	if v == 0 {
		return n.store.SliceOf(k), nil
	}
	sl := partition.Slice(v)
	if n.placer == nil || !n.placer.judge.Has(sl) || !n.charter.MayHold(sl, k) {
		return 0, fmt.Errorf("%.80q is said to be in %s", k, sl)
	}
	return sl, nil
}
