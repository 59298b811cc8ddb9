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

// What the store has under these names: of the ReplicaSet of each slice, of those that were not
// believed, for a person to look at, and of who the members were.
const (
	MetaSets      = "keep/"
	metaAside     = "aside/"
	MetaPlacement = "territory"
)

// Agreement is who keeps and owns each slice as far as this peer knows it (package quorum), written
// down before it is acted on, and what follows from it in the rest of the peer.
//
// It is a lock as well. It is held for writing while something is agreed and written down. It is
// held for reading from the question whether this peer acts in a slice, or follows its owner, to
// the end of the write that the answer allows. So no promise to another candidate falls between
// the two. It comes before all other locks of this package, of replicate and of the store; who
// holds it for reading must not take it again.
type Agreement struct {
	o Options

	deciding  sync.RWMutex
	decisions sync.Mutex                            // of undecided alone; taken with deciding held, or without
	undecided []*decision                           // wait for deciding
	mine      map[partition.Slice]quorum.ReplicaSet // owned slices as the crawler knows them; under deciding

	heldBefore bool        // it kept slices when it was opened
	informed   atomic.Bool // some member has told all ReplicaSets that it knows
	leaseKick  chan struct{}
	doubts     chan struct{} // something was heard that is in doubt: it is asked about at once
}

// NewAgreement makes the Agreement of a peer that knows nothing of any slice; Open restores it.
func NewAgreement(o Options) *Agreement {
	return &Agreement{o: o, mine: map[partition.Slice]quorum.ReplicaSet{}, leaseKick: make(chan struct{}, 1),
		doubts: make(chan struct{}, 1)}
}

// RLock holds the agreement as it is, until RUnlock.
func (a *Agreement) RLock() { a.deciding.RLock() }

// RUnlock gives back what RLock took.
func (a *Agreement) RUnlock() { a.deciding.RUnlock() }

// HeldBefore says whether this peer kept slices when it was opened.
func (a *Agreement) HeldBefore() bool { return a.heldBefore }

// Load restores what was agreed about the slices into m. Rows that are not believed are given to
// aside, under the name that they are put aside under.
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

// Open restores what was agreed about the slices. Rows of slices that no
// whole copy is here of, of whichever fork, are the beginning of a copy that was never finished:
// all of them are elsewhere, and they are dropped. In a store restored from a
// backup, which is not marked yet, all rows are those of forks: then forks is true.
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
	return a.Decide(func() {}) // cut what an owner has to cut
}

// decision is a step of the agreement that is to be taken.
type decision struct {
	step func()
	done bool // taken and, unless err says otherwise, written down; under deciding
	err  error
}

// slowDecision is how long a step of the agreement may take before the log says so:
// leases and ballots wait behind it.
const slowDecision = 200 * time.Millisecond

// Decide makes one step of the agreement and its write one (package quorum).
// Steps that come while another is written down are taken together and written
// down with one sync, by the first of them: when a peer dies, hundreds come at
// once.
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

// record writes down what steps changed and draws the consequences, until
// nothing changes any more. a.deciding is held.
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
				// From here on nothing is written to the slice but what its owner
				// replicates: its log is another's.
				a.o.Store.Log.Fence(true, s)
				delete(a.mine, s)
				lost = append(lost, s)
			case has && !(had && was.SameFork(c) && was.Gen+1 == c.Gen):
				lost, gained = append(lost, s), append(gained, s) // its pace starts anew
				a.mine[s], anew[s] = c, true
			case has:
				a.mine[s] = c
			}
			// Only an owner writes a log; a replica's is the owner's.
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
			a.o.Replicator.Logged(s) // it was passed over as long as this peer had no whole copy
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

// Recrawl tells the crawler and the forwarder of all slices that are owned. It is called when they are made.
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

// ownedNow are the slices whose frontier this peer works. a.deciding is held.
func (a *Agreement) ownedNow() []partition.Slice {
	out := make([]partition.Slice, 0, len(a.mine))
	for s := range a.mine {
		if a.o.Quorum.Has(s) {
			out = append(out, s)
		}
	}
	return out
}

// Ours says whether this peer owns s, acting or not.
func (a *Agreement) Ours(s partition.Slice) bool { return a.o.Quorum.Owner(s) == a.o.Self }

// Acts says whether links of s may be acknowledged here now, fetches whether a
// fetch may begin in it.
func (a *Agreement) Acts(s partition.Slice) bool { return a.o.Quorum.Acts(s, time.Now()) }
func (a *Agreement) Fetches(s partition.Slice) bool {
	return a.o.Quorum.Fetches(s, time.Now()) && a.o.Replicator.Current(s)
}

// AwaitAdmissions waits for those that began while a slice was still acted in.
func (a *Agreement) AwaitAdmissions() {
	a.deciding.Lock()
	defer a.deciding.Unlock()
}

// Hear takes the word of a peer about slices, as far as it counts (package quorum).
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

// KickLeases has the leases that lack something asked for at once: there are
// slices to lease that were not there a moment ago, or peers to lease from.
func (a *Agreement) KickLeases() {
	select {
	case a.leaseKick <- struct{}{}:
	default:
	}
}
