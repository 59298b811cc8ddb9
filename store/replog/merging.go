package replog

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/archive"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
	"github.com/echo-node/echo-node/store/queue"
)

// merger merges validated rows into the rows here. It is a join: rows may come again and in any
// order. It runs under the locks of their slices. It remembers what it wrote, because it reads the
// state before the batch.
type merger struct {
	t        *batch
	log      bool // the rows come in the order of their owner's log
	states   map[sliceKey]format.KeyState
	records  map[sliceKey]archive.Version
	sites    map[format.SiteID]store.Site
	paces    map[format.SiteID]incoming
	links    map[sliceKey]incoming
	places   map[sliceUnit]store.Placement
	captures map[string][]byte // capture rows that were written
	visited  map[sliceKey]format.SiteID
	capped   map[format.ItemID]bool // tables of Keys to be trimmed
}

// sliceKey is a Key in one of the slices that may hold it.
type sliceKey struct {
	slice partition.Slice
	key   partition.Key
}

type sliceUnit struct {
	slice partition.Slice
	unit  partition.Unit
}

func newMerger(t *batch, log bool) *merger {
	return &merger{t: t, log: log, states: make(map[sliceKey]format.KeyState),
		records: make(map[sliceKey]archive.Version),
		sites:   make(map[format.SiteID]store.Site), paces: make(map[format.SiteID]incoming),
		links:    make(map[sliceKey]incoming),
		places:   make(map[sliceUnit]store.Placement),
		captures: make(map[string][]byte), visited: make(map[sliceKey]format.SiteID),
		capped: make(map[format.ItemID]bool)}
}

func (m *merger) merge(in []incoming) error {
	for _, i := range in {
		var err error
		switch {
		case i.state != nil:
			err = m.state(i.id, i.key, *i.state)
		case i.record != nil:
			err = m.record(i)
		case i.site != nil:
			if m.log {
				delete(m.paces, i.id) // what follows in the log replaces it
			}
			err = m.site(i.id, *i.site)
		case i.pace != nil:
			m.paces[i.id] = i
		case i.capture != nil:
			err = m.capture(i)
		case i.item != nil:
			err = m.item(i)
		case i.link != nil || i.sent:
			m.links[sliceKey{i.id.Slice, i.key}] = i
		case i.place != nil:
			at := sliceUnit{i.id.Slice, i.place.Unit}
			if old, ok := m.places[at]; !ok || format.PlacementAbove(*i.place, old) {
				m.places[at] = *i.place
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stateOf returns the state of k as it is now, or nil.
func (m *merger) stateOf(id format.SiteID, k partition.Key) (*format.KeyState, error) {
	if old, ok := m.states[sliceKey{id.Slice, k}]; ok {
		return &old, nil
	}
	old, err := m.t.KeyState(id, k)
	if errors.Is(err, store.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m.states[sliceKey{id.Slice, k}] = old
	return &old, nil
}

// state keeps the newer fetch. Of two fetches of the same time, it keeps the greater row, so that
// the order of imports does not matter.
func (m *merger) state(id format.SiteID, k partition.Key, now format.KeyState) error {
	old, err := m.stateOf(id, k)
	if err != nil {
		return err
	}
	if old == nil {
		if now.Seq, err = m.t.Seq(); err != nil {
			return err
		}
	} else {
		now.Seq = old.Seq
		if c := now.Fetched.Compare(old.Fetched); c < 0 || c == 0 && bytes.Compare(now.Encode(), old.Encode()) <= 0 {
			return nil
		}
	}
	m.states[sliceKey{id.Slice, k}] = now
	return m.t.Put(id, k, old, now)
}

// record keeps the newer fetch. Of two fetches of the same time, it keeps the greater digest, then
// the greater bytes. If a record came without the state of its Key, the Key becomes due: at worst
// it is fetched once more.
func (m *merger) record(i incoming) error {
	st, err := m.stateOf(i.id, i.key)
	if err != nil {
		return err
	}
	if st == nil {
		at := i.record.FetchedAt.UTC()
		if err := m.state(i.id, i.key, format.KeyState{State: store.StatePending, At: at, Admitted: at}); err != nil {
			return err
		}
	}
	old, again := m.records[sliceKey{i.id.Slice, i.key}]
	ok := again
	if !ok {
		old.Body, err = m.t.s.engine.Get(format.KeyRow(format.TabRecord, i.id, i.key))
		if err == nil && bytes.Equal(old.Body, i.body) {
			return nil
		}
		if err == nil {
			old.Record, err = m.t.s.engine.Packer.DecodeRecord(old.Body)
			ok = err == nil
		}
		if engine.IgnoreAbsent(err) != nil {
			return err
		}
	}
	now := archive.Version{Record: *i.record, Body: i.body}
	if ok && !now.Above(old) {
		return nil
	}
	m.records[sliceKey{i.id.Slice, i.key}] = now
	if again { // counted and logged already, except for the size of a file
		if err := m.t.Sized(i.id, i.key, i.body); err != nil {
			return err
		}
		return m.t.Rows.Set(format.KeyRow(format.TabRecord, i.id, i.key), i.body, nil)
	}
	return m.t.Record(i.id, i.key, i.body)
}

// site merges two states of one site's pace (I7): the next request is not sooner than either
// allows. From a log, it takes the owner's state, in which a back-off may be over or a robots.txt
// gone. end writes the rows once.
func (m *merger) site(id format.SiteID, now store.Site) error {
	if m.log {
		m.sites[id] = now
		return nil
	}
	old, ok := m.sites[id]
	if !ok {
		var err error
		old, err = m.t.s.queue.SiteIn(m.t.s.engine.DB, id)
		if engine.IgnoreAbsent(err) != nil {
			return err
		}
		ok = err == nil
	}
	if ok {
		now = reconcileSites(old, now)
	}
	m.sites[id] = now
	return nil
}

// end writes the rows that may have come more than once.
func (m *merger) end() error {
	for at, st := range m.states {
		if !st.Bare(at.key) {
			continue
		}
		_, written := m.records[at]
		if err := m.t.Unrecord(m.t.s.engine.IDIn(at.slice, at.key), at.key, written); err != nil {
			return err
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(m.paces), format.SiteID.Compare) {
		if err := m.pace(id, m.paces[id]); err != nil {
			return err
		}
	}
	for id, st := range m.sites {
		if err := m.t.Site(id, st); err != nil {
			return err
		}
	}
	for at, p := range m.places {
		if err := m.t.Place(format.SiteID{Slice: at.slice}, p); err != nil {
			return err
		}
	}
	for k, id := range m.visited {
		if err := m.t.TrimCaptures(id, k.key); err != nil {
			return err
		}
	}
	for id := range m.capped {
		if err := m.t.TrimItems(id.Table, id.SiteID, id.Key, format.KeepOf(id.Table)); err != nil {
			return err
		}
	}
	for _, i := range m.links {
		var err error
		if i.sent {
			err = m.t.UnqueueKey(i.id.Slice, i.key)
		} else {
			err = m.t.Queue(*i.link)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pace writes a pace whose robots.txt did not change. It writes the row as it came when the
// robots.txt here are the same.
func (m *merger) pace(id format.SiteID, i incoming) error {
	st, ok := m.sites[id]
	if !ok {
		old, err := m.t.s.queue.SiteRow(m.t.s.engine.DB, id)
		if engine.IgnoreAbsent(err) != nil {
			return err
		}
		if m.log && sameRobots(old, *i.pace) {
			return m.t.SiteRow(id, i.body, format.NamePace)
		}
		st, err = m.t.s.queue.SiteIn(m.t.s.engine.DB, id)
		if engine.IgnoreAbsent(err) != nil {
			return err
		}
	}
	now := i.pace.Site
	for origin, h := range i.pace.Robots {
		r, ok := st.Robots[origin]
		if sum := sha256.Sum256(r.Body); !ok || !bytes.Equal(sum[:], h.Sum) {
			continue // not here: it will be fetched again
		}
		if now.Robots == nil {
			now.Robots = make(map[string]store.Robots)
		}
		now.Robots[origin] = store.Robots{Body: r.Body, Status: h.Status, Fetched: h.Fetched, Expires: h.Expires}
	}
	return m.site(id, now)
}

func sameRobots(a, b format.SiteRow) bool {
	return maps.EqualFunc(a.Robots, b.Robots, func(x, y format.RobotsHead) bool { return bytes.Equal(x.Sum, y.Sum) })
}

// reconcileSites takes the state of the peer that sent the last request, the later times, and the
// newer robots.txt for each origin. The result does not depend on the order.
func reconcileSites(a, b store.Site) store.Site {
	out := a
	if later(b, a) {
		out = b
	}
	out.Delay = max(a.Delay, b.Delay)
	out.BackOff = max(a.BackOff, b.BackOff)
	out.Fetched = max(a.Fetched, b.Fetched)
	robots := make(map[string]store.Robots, len(a.Robots)+len(b.Robots))
	maps.Copy(robots, a.Robots)
	for origin, r := range b.Robots {
		if old, ok := robots[origin]; !ok || r.Newer(old) {
			robots[origin] = r
		}
	}
	if out.Robots = queue.FewRobots(robots); len(robots) == 0 {
		out.Robots = nil
	}
	return out
}

// later reports whether a is the state of the peer that sent the last request.
func later(a, b store.Site) bool {
	return cmp.Or(a.NextAllowed.Compare(b.NextAllowed), cmp.Compare(a.Fetched, b.Fetched),
		cmp.Compare(a.Failures, b.Failures),
		cmp.Compare(a.Stopped, b.Stopped), bytes.Compare(a.Hints, b.Hints)) > 0
}
