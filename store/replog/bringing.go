package replog

import (
	"errors"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// Bringer is a member that sends rows of a slice without being one of its replicas. It has a copy
// of a dead fork, or a copy restored from a backup or from the trash. The slice's owner takes from
// it what is missing, and believes nothing that the owner knows better. See BringRows.
type Bringer struct {
	Peer string // its id
	// Overrules says that overrides count if they name the bringer as their peer.
	Overrules bool
	// Allow returns an error for a Key that this peer does not crawl; nil = all are allowed.
	Allow func(k partition.Key, depth int) error
}

// The owner visits a Key by itself within these times after it took the Key's record from a
// bringer.
const (
	ProveReplaced = time.Hour      // its record replaced the one here
	ProveBrought  = 24 * time.Hour // its record is the only one
)

// Brought is the number of rows that were taken and the number that were left out.
type Brought struct{ Taken, Left int }

// BringRows merges rows of sl as ImportRows does, but from a peer that is not a replica of the
// slice:
//
//   - A Key that is not known here is admitted, as a link is. It is due within
//     ProveBrought, whatever its row says, so that nobody can delay a Key for ever.
//   - A record replaces the one here only if it is newer and names the bringer as its
//     peer. A record of another peer is taken only where there is none, and Record.Via
//     then names the bringer. The Key is due within ProveReplaced or ProveBrought, so
//     false data lasts no longer than that.
//   - Captures, posts, edges, walks and gaps are taken only where no row of that name
//     exists, so a deletion known here stays. Captures of another peer are taken only
//     where the Key has no capture.
//   - An override counts if it names the bringer and Bringer.Overrules is set.
//   - Links to other slices are taken, because any member may forward any link.
//   - The pace of sites, placements, checkpoints and files of accounts are left out. The
//     owner finds them itself, and only a visit of an account decides which of its files
//     are kept.
//
// Bringing rows again changes nothing more. ErrRow means the same as in ImportRows.
func (s *Log) BringRows(sl partition.Slice, rows []store.Row, now time.Time, by Bringer) (b Brought, err error) {
	if err := s.engine.Enter(); err != nil {
		return b, err
	}
	defer s.engine.Leave()
	v := s.NewValidator(now, false)
	in, _, err := v.Rows(sl, rows)
	if err != nil {
		return b, fmt.Errorf("store: rows of %s by %s: %w", sl, by.Peer, err)
	}
	b.Left = v.left
	v.tellAhead(sl)
	err = s.write([]partition.Slice{sl}, func(t *batch) error {
		b.Taken = 0 // a batch may be built again
		m := bringing{merger: newMerger(t, false), by: by, now: now.UTC().Truncate(store.Tick),
			empty: map[sliceKey]bool{}}
		for _, i := range in {
			taken, err := m.bring(i)
			if err != nil {
				return err
			}
			if taken {
				b.Taken++
			}
		}
		return m.end()
	})
	if err != nil {
		return Brought{}, fmt.Errorf("store: rows of %s by %s: %w", sl, by.Peer, err)
	}
	b.Left += len(in) - b.Taken
	return b, nil
}

// bringing merges rows of a Bringer.
type bringing struct {
	*merger
	by    Bringer
	now   time.Time
	empty map[sliceKey]bool // Keys that had no capture before the first one came
}

// bring takes one row or leaves it out.
func (m *bringing) bring(i incoming) (taken bool, err error) {
	if i.key.Kind() == partition.KindFile {
		return false, nil
	}
	switch {
	case i.state != nil:
		return m.admit(i.id, i.key, *i.state)
	case i.record != nil:
		return m.bringRecord(i)
	case i.capture != nil:
		return m.bringCapture(i)
	case i.item != nil:
		return m.bringItem(i)
	case i.link != nil:
		if m.refuses(i.link.Key, i.link.Depth) {
			return false, nil
		}
		return true, m.merge([]incoming{i})
	}
	return false, nil // a site, a pace, a placement, or a row that is gone
}

// refuses reports whether Allow refuses the Key k at depth.
func (m *bringing) refuses(k partition.Key, depth int) bool {
	return m.by.Allow != nil && m.by.Allow(k, depth) != nil
}

// admit takes a Key that is not known here. The Key becomes pending, or done until the owner visits
// it.
func (m *bringing) admit(id format.SiteID, k partition.Key, said format.KeyState) (bool, error) {
	old, err := m.stateOf(id, k)
	if err != nil || old != nil || m.refuses(k, said.Depth) {
		return false, err
	}
	now := format.KeyState{State: store.StatePending, At: m.now, Seed: said.Seed, Priority: said.Priority,
		Depth:    said.Depth,
		Referrer: said.Referrer, Admitted: m.now}
	if said.State == store.StateDone {
		now.State, now.At, now.Fetched = store.StateDone, m.now.Add(ProveBrought), said.Fetched
		if said.At.Before(now.At) && !said.At.IsZero() {
			now.At = said.At
		}
	}
	return true, m.state(id, k, now)
}

// bringRecord takes a record if it is newer and the bringer's own, or if there is no other.
func (m *bringing) bringRecord(i incoming) (bool, error) {
	r := *i.record
	if _, err := m.admit(i.id, i.key, format.KeyState{State: store.StatePending}); err != nil {
		return false, err
	}
	st, err := m.stateOf(i.id, i.key)
	if err != nil || st == nil || st.State == store.StateRefused || st.State == store.StatePlaced {
		return false, err // refused here, or crawled in another slice
	}
	within := ProveBrought
	var had []byte
	if old, again := m.records[sliceKey{i.id.Slice, i.key}]; again {
		had = old.Body
	} else if had, err = m.t.s.engine.Get(format.KeyRow(format.TabRecord, i.id,
		i.key)); engine.IgnoreAbsent(err) != nil {
		return false, err
	}
	if r.Via = ""; r.Peer != m.by.Peer {
		r.Via = m.by.Peer
	}
	r.Verdict = nil // the owner judges, from what it has itself
	if len(had) > 0 {
		old, err := m.t.s.engine.Packer.DecodeRecord(had)
		if err != nil {
			return false, err
		}
		if within = ProveReplaced; r.Via != "" || !r.FetchedAt.After(old.FetchedAt) {
			return false, nil
		}
	}
	if i.body, err = m.t.s.engine.Packer.EncodeRecord(&r); err != nil {
		return false, fmt.Errorf("%w: %w", store.ErrRow, err)
	}
	i.record = &r
	if err := m.prove(i.id, i.key, *st, r.FetchedAt, within); err != nil {
		return false, err
	}
	return true, m.record(i)
}

// prove makes the Key of a taken record due within the given time. The Key's state becomes no older
// than the record, as after a fetch.
func (m *bringing) prove(id format.SiteID, k partition.Key, old format.KeyState, fetched time.Time,
	within time.Duration) error {
	now := old
	if fetched = fetched.UTC().Truncate(store.Tick); fetched.After(now.Fetched) {
		now.Fetched = fetched
	}
	if soon := m.now.Add(within); now.At.IsZero() || now.At.After(soon) {
		now.At = soon
	}
	if now.State == store.StateDone || now.State == store.StateGone {
		now.Etag, now.Modified, now.Digest = "", "", "" // "not modified" proves nothing
	}
	if now == old {
		return nil
	}
	now.Fetched = now.Fetched.Add(store.Tick) // later than what the replicas have
	m.states[sliceKey{id.Slice, k}] = now
	return m.t.Put(id, k, &old, now)
}

// bringCapture takes a capture of the bringer's own visits, or any capture of a Key that has none.
func (m *bringing) bringCapture(i incoming) (bool, error) {
	n := *i.capture
	if i.sent {
		return false, nil
	}
	if _, err := m.t.s.engine.Get(n.Row()); !errors.Is(err, store.ErrNotExist) {
		return false, err
	}
	b, err := m.t.s.engine.Packer.Unpack(i.body, format.MaxCaptureRow)
	if err != nil {
		return false, err
	}
	c, _, err := format.ParseCapture(n, b)
	if err != nil {
		return false, err
	}
	if c.Peer != m.by.Peer {
		k := sliceKey{n.Slice, n.Key}
		if _, asked := m.empty[k]; !asked {
			names, err := m.t.CaptureNames(n.SiteID, n.Key)
			if err != nil {
				return false, err
			}
			m.empty[k] = len(names) == 0
		}
		if !m.empty[k] {
			return false, nil
		}
	}
	st, err := m.stateOf(n.SiteID, n.Key)
	if err != nil || st == nil {
		return false, err // the Key was not admitted
	}
	return true, m.capture(i)
}

// bringItem takes an item if no item of its name exists here.
func (m *bringing) bringItem(i incoming) (bool, error) {
	switch i.item.Table {
	case format.TabCheckpoint:
		return false, nil
	case format.TabOverride:
		o, err := format.ParseOverride(i.body)
		if err != nil || !m.by.Overrules || o.Peer != m.by.Peer {
			return false, err
		}
	}
	if old, err := m.t.State(*i.item); err != nil || old != nil {
		return false, err
	}
	return true, m.item(i)
}
