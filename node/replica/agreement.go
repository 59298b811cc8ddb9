package replica

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/db"
)

// Names of values in the store: the ReplicaSet of each slice, the ReplicaSets that Load rejected
// (kept for a person to look at), and the members of the swarm.
const (
	MetaSets      = "keep/"
	metaAside     = "aside/"
	MetaPlacement = "territory"
)

// Agreement holds which peers keep and own each slice, as far as this peer knows (package quorum).
// It writes each change to disk before the peer acts on it, and then informs the rest of the peer.
//
// Agreement is also a lock. It is held for writing while something is agreed and written. It is
// held for reading from the check that this peer acts in a slice, or follows its owner, to the end
// of the write. So no promise to another candidate falls between the check and the write. This lock
// comes before all other locks of this package, of replicate and of the store. A caller that holds
// it for reading must not take it again.
type Agreement struct {
	o Options

	deciding  sync.RWMutex
	decisions sync.Mutex                            // protects undecided
	undecided []*decision                           // steps that wait for deciding
	mine      map[partition.Slice]quorum.ReplicaSet // owned, as the crawler knows; under deciding

	heldBefore bool        // this peer kept slices when it was opened
	informed   atomic.Bool // some member has sent all ReplicaSets that it knows
	leaseKick  chan struct{}
	doubts     chan struct{} // signals a new doubtful report to Tidier
}

// NewAgreement returns the Agreement of a peer that knows nothing of any slice. Open restores it.
func NewAgreement(o Options) *Agreement {
	return &Agreement{o: o, mine: map[partition.Slice]quorum.ReplicaSet{}, leaseKick: make(chan struct{}, 1),
		doubts: make(chan struct{}, 1)}
}

// RLock keeps the agreement unchanged until RUnlock.
func (a *Agreement) RLock() { a.deciding.RLock() }

// RUnlock releases the lock that RLock took.
func (a *Agreement) RUnlock() { a.deciding.RUnlock() }

// HeldBefore reports whether this peer kept slices when it was opened.
func (a *Agreement) HeldBefore() bool { return a.heldBefore }

// Load restores into m what was agreed about the slices. Load passes each rejected row to aside,
// with the name under which the row is to be put aside.
func Load(s *db.Store, m *quorum.Machine, aside func(sl partition.Slice, why *quorum.AsideError, name string,
	row []byte)) error {
	err := s.Metas(MetaSets, func(name string, v []byte) error {
		sl, err := partition.ParseSlice(strings.TrimPrefix(name, MetaSets))
		if err != nil {
			return err
		}
		err = m.Load(sl, v)
		var why *quorum.AsideError
		if errors.As(err, &why) {
			aside(sl, why, metaAside+sl.String(), v)
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("what was agreed about slices: %w", err)
	}
	return nil
}

// Open restores what was agreed about the slices. Rows of a slice without a whole copy of any fork
// are the start of a copy that never finished. The whole slice is on other peers, so Open drops
// these rows. In a store restored from a backup and not marked yet, all rows belong to forks: then
// forks is true, and the slice is marked as diverged.
func (a *Agreement) Open(forks bool) error {
	asides := map[string][]byte{}
	err := Load(a.o.Store, a.o.Quorum, func(s partition.Slice, aside *quorum.AsideError, name string, v []byte) {
		a.o.Logger.Warn("what was agreed about a slice is put aside", "slice", s, "why", aside.Why, "owner",
			aside.Now.Owner, "gen", aside.Now.Gen)
		a.o.Counts.ReplicaSetsAside.Add(1)
		asides[name] = v
	})
	if err == nil && len(asides) > 0 {
		if err = a.o.Store.SetMetas(asides); err != nil {
			err = fmt.Errorf("what was agreed about slices: %w", err)
		}
	}
	if err != nil {
		return err
	}
	diverged := a.o.Quorum.Diverged()
	var foreign []partition.Slice
	for _, s := range a.o.Slices {
		c := a.o.Quorum.ReplicaSet(s)
		a.heldBefore = a.heldBefore || a.o.Quorum.Has(s)
		if c.Owner == a.o.Self {
			a.mine[s] = c
			a.o.Replicator.Changed(s)
		} else {
			foreign = append(foreign, s)
		}
		if c.Owner == a.o.Self && len(c.Replicas) > 1 {
			a.o.Store.Log.SetLogged(true, s)
		}
		if a.o.Quorum.Has(s) || slices.Contains(diverged, s) {
			continue
		}
		if rows, _, err := a.o.Store.Log.SliceRows(s, nil, 1); err != nil {
			return err
		} else if len(rows) > 0 && forks {
			a.o.Quorum.MarkDiverged(s)
		} else if len(rows) > 0 {
			if err := a.o.Store.Log.DropSlice(s); err != nil {
				return err
			}
		}
	}
	if err := a.o.Store.Log.Relog(func(s partition.Slice) bool { _, mine := a.mine[s]; return mine }); err != nil {
		return err
	}
	a.o.Store.Log.Fence(true, foreign...)
	a.o.Rest.Keep(slices.Collect(maps.Keys(a.mine)))
	return a.Decide(func() {}) // cut the logs that an owner has to cut
}

// decision is one step of the agreement that waits to be taken.
type decision struct {
	step func()
	done bool // the step is taken and, if err is nil, written; guarded by deciding
	err  error
}

// slowDecision is how long a step may take before the log mentions it. Leases and ballots wait
// behind it.
const slowDecision = 200 * time.Millisecond

// Decide runs one step of the agreement and writes its result as one unit (package quorum). Steps
// that arrive while another one is being written are run together by the first of them and written
// with one sync. When a peer dies, hundreds of steps arrive at once.
func (a *Agreement) Decide(step func()) error {
	d := &decision{step: step}
	a.decisions.Lock()
	a.undecided = append(a.undecided, d)
	a.decisions.Unlock()
	a.deciding.Lock()
	defer a.deciding.Unlock()
	if d.done {
		return d.err
	}
	a.decisions.Lock()
	all := a.undecided
	a.undecided = nil
	a.decisions.Unlock()
	begun := time.Now()
	for _, d := range all {
		d.step()
	}
	stepped := time.Since(begun)
	err := a.record()
	if took := time.Since(begun); took > slowDecision {
		a.o.Logger.Debug("slow agreement", "steps", len(all), "stepping", stepped, "took", took)
	}
	for _, d := range all {
		d.done, d.err = true, err
	}
	return err
}

// record writes what the steps changed and applies the consequences, until nothing changes any
// more. a.deciding is held.
func (a *Agreement) record() error {
	var gained, lost []partition.Slice
	anew := map[partition.Slice]bool{}
	for {
		rows := a.o.Quorum.Dirty()
		if len(rows) > 0 {
			metas := make(map[string][]byte, len(rows))
			for s, b := range rows {
				metas[MetaSets+s.String()] = b
			}
			if err := a.o.Store.SetMetas(metas); err != nil {
				return fmt.Errorf("agreement: %w", err)
			}
		}
		for s := range rows {
			c := a.o.Quorum.ReplicaSet(s)
			was, had := a.mine[s]
			if had && was.Compare(c) == 0 {
				continue
			}
			if had || c.Owner == a.o.Self {
				a.o.Logger.Debug("agreed", "slice", s, "gen", c.Gen, "owner", c.Owner, "head", a.o.Store.Log.LogHead(s))
			}
			switch has := c.Owner == a.o.Self; {
			case had && !has:
				// From here on only rows that the new owner replicates are written to the slice.
				a.o.Store.Log.Fence(true, s)
				delete(a.mine, s)
				lost = append(lost, s)
			case has && !(had && was.SameFork(c) && was.Gen+1 == c.Gen):
				lost, gained = append(lost, s), append(gained, s) // the crawler starts it again
				a.mine[s], anew[s] = c, true
			case has:
				a.mine[s] = c
			}
			// Only the owner writes a log. A replica's log is a copy of the owner's.
			a.o.Store.Log.SetLogged(c.Owner == a.o.Self && (len(c.Replicas) > 1 || a.o.Replicator.HasLearners(s)), s)
			a.o.Replicator.Changed(s)
		}
		uncut := a.o.Quorum.Uncut()
		for s, head := range uncut {
			anew[s] = true
			if a.o.Store.Log.LogHead(s) != head {
				if err := a.o.Store.Log.ResetLog(s, head); err != nil {
					return fmt.Errorf("agreement: %w", err)
				}
			}
			a.o.Quorum.Copied(s)
			a.o.Replicator.Logged(s) // Logged skipped it while this peer had no whole copy
		}
		if len(rows) == 0 && len(uncut) == 0 {
			break
		}
	}
	if len(anew) > 0 {
		if err := a.o.Store.Log.Relog(func(s partition.Slice) bool { return anew[s] }); err != nil {
			return fmt.Errorf("agreement: %w", err)
		}
	}
	if len(lost)+len(gained) > 0 {
		a.o.Rest.Gained(gained)
		a.o.Store.Log.Fence(false, gained...)
		a.o.Rest.Keep(slices.Collect(maps.Keys(a.mine)))
		a.recrawl(lost, gained)
	}
	return nil
}

// Recrawl tells the crawler and the forwarder about all owned slices. It is called once they exist.
func (a *Agreement) Recrawl() {
	a.deciding.Lock()
	defer a.deciding.Unlock()
	a.recrawl(nil, a.ownedNow())
}

// recrawl tells the crawler and the forwarder which slices are owned now. a.deciding is held.
func (a *Agreement) recrawl(lost, gained []partition.Slice) {
	a.o.Rest.Recrawl(a.ownedNow(), lost, gained)
	a.KickLeases()
}

// ownedNow returns the owned slices whose frontier this peer works on. a.deciding is held.
func (a *Agreement) ownedNow() []partition.Slice {
	out := make([]partition.Slice, 0, len(a.mine))
	for s := range a.mine {
		if a.o.Quorum.Has(s) {
			out = append(out, s)
		}
	}
	return out
}

// Ours reports whether this peer owns s, whether it acts there or not.
func (a *Agreement) Ours(s partition.Slice) bool { return a.o.Quorum.Owner(s) == a.o.Self }

// Acts reports whether this peer may acknowledge links of s now.
func (a *Agreement) Acts(s partition.Slice) bool { return a.o.Quorum.Acts(s, time.Now()) }

// Fetches reports whether a fetch may start in s now.
func (a *Agreement) Fetches(s partition.Slice) bool {
	return a.o.Quorum.Fetches(s, time.Now()) && a.o.Replicator.Current(s)
}

// AwaitAdmissions waits for admissions that started while this peer still acted in a slice.
func (a *Agreement) AwaitAdmissions() {
	a.deciding.Lock()
	defer a.deciding.Unlock()
}

// Hear applies the reports of peer from about slices, as far as they count (package quorum).
func (a *Agreement) Hear(from string, words []quorum.SliceReplicas) error {
	if len(words) == 0 {
		return nil
	}
	doubted := a.o.Quorum.InDoubt()
	if err := a.Decide(func() { a.o.Quorum.Hear(from, time.Now(), words...) }); err != nil {
		return err
	}
	if !doubted && a.o.Quorum.InDoubt() {
		select {
		case a.doubts <- struct{}{}:
		default:
		}
	}
	return nil
}

// KickLeases requests missing leases at once. It is called when slices to lease, or peers that
// grant leases, have just been added.
func (a *Agreement) KickLeases() {
	select {
	case a.leaseKick <- struct{}{}:
	default:
	}
}
