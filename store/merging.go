package store

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"

	"github.com/echo-node/echo-node/partition"
)

// merger makes validated rows one with those there are. It is a join: rows may
// come again and in any order. It runs under the locks of their slices, and
// remembers what it wrote, since it reads what was there before.
type merger struct {
	t        *txn
	log      bool // the rows come in the order of their owner's log
	states   map[sliceKey]keyState
	records  map[sliceKey]merged
	sites    map[siteID]Site
	paces    map[siteID]incoming
	links    map[sliceKey]incoming
	places   map[sliceUnit]Placement
	captures map[string][]byte // rows put
	visited  map[sliceKey]siteID
	capped   map[itemID]bool // tables of Keys to be trimmed
}

// merged is the order of a record among those of its Key.
type merged struct {
	record Record
	body   []byte
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

func newMerger(t *txn, log bool) *merger {
	return &merger{t: t, log: log, states: make(map[sliceKey]keyState), records: make(map[sliceKey]merged),
		sites: make(map[siteID]Site), paces: make(map[siteID]incoming), links: make(map[sliceKey]incoming),
		places:   make(map[sliceUnit]Placement),
		captures: make(map[string][]byte), visited: make(map[sliceKey]siteID), capped: make(map[itemID]bool)}
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
			m.links[sliceKey{i.id.slice, i.key}] = i
		case i.place != nil:
			at := sliceUnit{i.id.slice, i.place.Unit}
			if old, ok := m.places[at]; !ok || i.place.above(old) {
				m.places[at] = *i.place
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stateOf is what is known of k now, nil for nothing.
func (m *merger) stateOf(id siteID, k partition.Key) (*keyState, error) {
	if old, ok := m.states[sliceKey{id.slice, k}]; ok {
		return &old, nil
	}
	old, err := m.t.keyState(id, k)
	if errors.Is(err, ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m.states[sliceKey{id.slice, k}] = old
	return &old, nil
}

// state keeps the newer fetch; of two of the same moment the greater row, so
// that the order of imports does not matter.
func (m *merger) state(id siteID, k partition.Key, now keyState) error {
	old, err := m.stateOf(id, k)
	if err != nil {
		return err
	}
	if old == nil {
		if now.seq, err = m.t.seq(); err != nil {
			return err
		}
	} else {
		now.seq = old.seq
		if c := now.fetched.Compare(old.fetched); c < 0 || c == 0 && bytes.Compare(now.encode(), old.encode()) <= 0 {
			return nil
		}
	}
	m.states[sliceKey{id.slice, k}] = now
	return m.t.put(id, k, old, now)
}

// record keeps the newer fetch; of two of the same moment the greater digest,
// then the greater bytes. The Key of a record that came without its state is
// put down as due: at worst it is fetched once more.
func (m *merger) record(i incoming) error {
	st, err := m.stateOf(i.id, i.key)
	if err != nil {
		return err
	}
	if st == nil {
		at := i.record.FetchedAt.UTC()
		if err := m.state(i.id, i.key, keyState{state: StatePending, at: at, admitted: at}); err != nil {
			return err
		}
	}
	old, again := m.records[sliceKey{i.id.slice, i.key}]
	ok := again
	if !ok {
		old.body, err = m.t.s.get(keyRow(tabRecord, i.id, i.key))
		if err == nil && bytes.Equal(old.body, i.body) {
			return nil
		}
		if err == nil {
			old.record, err = m.t.s.packer.decodeRecord(old.body)
			ok = err == nil
		}
		if ignoreAbsent(err) != nil {
			return err
		}
	}
	now := merged{*i.record, i.body}
	if ok && !now.above(old) {
		return nil
	}
	m.records[sliceKey{i.id.slice, i.key}] = now
	if again { // counted and logged already, but for what a file counts as
		if err := m.t.sized(i.id, i.key, i.body); err != nil {
			return err
		}
		return m.t.b.Set(keyRow(tabRecord, i.id, i.key), i.body, nil)
	}
	return m.t.record(i.id, i.key, i.body)
}

func (a merged) above(b merged) bool {
	if c := a.record.FetchedAt.Compare(b.record.FetchedAt); c != 0 {
		return c > 0
	}
	if a.record.Digest != b.record.Digest {
		return a.record.Digest > b.record.Digest
	}
	return bytes.Compare(a.body, b.body) > 0
}

// site reconciles two views of one site's pace (I7): never sooner than either says.
// Of a log it takes the owner's word, which may be that a back-off is over or a
// robots.txt gone. The rows are written once, by end.
func (m *merger) site(id siteID, now Site) error {
	if m.log {
		m.sites[id] = now
		return nil
	}
	old, ok := m.sites[id]
	if !ok {
		var err error
		old, err = m.t.s.siteIn(m.t.s.db, id)
		if ignoreAbsent(err) != nil {
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

// end writes what may have come more than once.
func (m *merger) end() error {
	for at, st := range m.states {
		if !st.bare(at.key) {
			continue
		}
		_, written := m.records[at]
		if err := m.t.unrecord(m.t.s.idIn(at.slice, at.key), at.key, written); err != nil {
			return err
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(m.paces), siteID.compare) {
		if err := m.pace(id, m.paces[id]); err != nil {
			return err
		}
	}
	for id, st := range m.sites {
		if err := m.t.site(id, st); err != nil {
			return err
		}
	}
	for at, p := range m.places {
		if err := m.t.place(siteID{slice: at.slice}, p); err != nil {
			return err
		}
	}
	for k, id := range m.visited {
		v := visiting{t: m.t, id: id, key: k.key}
		v.names, v.err = m.t.captureNames(id, k.key)
		if err := v.trim(); err != nil {
			return err
		}
	}
	for id := range m.capped {
		if err := m.t.trimItems(id.table, id.siteID, id.key, keepOf(id.table)); err != nil {
			return err
		}
	}
	for _, i := range m.links {
		var err error
		if i.sent {
			err = m.t.unqueueKey(i.id.slice, i.key)
		} else {
			err = m.t.queue(*i.link)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pace writes a pace whose robots.txt did not change: as it came, when they are
// here as they are there.
func (m *merger) pace(id siteID, i incoming) error {
	st, ok := m.sites[id]
	if !ok {
		old, err := m.t.s.siteRow(m.t.s.db, id)
		if ignoreAbsent(err) != nil {
			return err
		}
		if m.log && sameRobots(old, *i.pace) {
			return m.t.siteRow(id, i.body, namePace)
		}
		st, err = m.t.s.siteIn(m.t.s.db, id)
		if ignoreAbsent(err) != nil {
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
			now.Robots = make(map[string]Robots)
		}
		now.Robots[origin] = Robots{Body: r.Body, Status: h.Status, Fetched: h.Fetched, Expires: h.Expires}
	}
	return m.site(id, now)
}

func sameRobots(a, b siteRow) bool {
	return maps.EqualFunc(a.Robots, b.Robots, func(x, y robotsHead) bool { return bytes.Equal(x.Sum, y.Sum) })
}

// reconcileSites takes the account of whoever asked last, the later time, and of
// each origin the newer robots.txt. It is the same in any order.
func reconcileSites(a, b Site) Site {
	out := a
	if later(b, a) {
		out = b
	}
	out.Delay = max(a.Delay, b.Delay)
	out.BackOff = max(a.BackOff, b.BackOff)
	out.Fetched = max(a.Fetched, b.Fetched)
	robots := make(map[string]Robots, len(a.Robots)+len(b.Robots))
	maps.Copy(robots, a.Robots)
	for origin, r := range b.Robots {
		if old, ok := robots[origin]; !ok || r.newer(old) {
			robots[origin] = r
		}
	}
	if out.Robots = fewRobots(robots); len(robots) == 0 {
		out.Robots = nil
	}
	return out
}

// later says that a is of whoever asked last.
func later(a, b Site) bool {
	return cmp.Or(a.NextAllowed.Compare(b.NextAllowed), cmp.Compare(a.Fetched, b.Fetched),
		cmp.Compare(a.Failures, b.Failures),
		cmp.Compare(a.Stopped, b.Stopped), bytes.Compare(a.Hints, b.Hints)) > 0
}

func (r Robots) newer(old Robots) bool {
	return cmp.Or(r.Fetched.Compare(old.Fetched), r.Expires.Compare(old.Expires), cmp.Compare(r.Status, old.Status),
		bytes.Compare(r.Body, old.Body)) > 0
}
