package node

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
)

// metaKeep is the prefix of keeping's rows in the store: then the slice. metaAside
// is that of those that were not believed, for a person to look at.
const (
	metaKeep  = "keep/"
	metaAside = "aside/"
)

// openQuorum restores what was agreed about the slices. Rows of slices that no
// whole copy is here of, of whichever fork, are the beginning of a copy that was never finished:
// all of them are elsewhere, and they are dropped. In a store restored from a
// backup all rows are those of forks; see Restore.
func (n *Node) openQuorum() (err error) {
	n.quorum = quorum.New(quorum.Options{Self: n.id, Founder: n.charter.Founder, Slices: n.slices, Started: n.started,
		Head: n.store.Log.LogHead})
	asides := map[string][]byte{}
	err = n.store.Metas(metaKeep, func(name string, v []byte) error {
		s, err := partition.ParseSlice(strings.TrimPrefix(name, metaKeep))
		if err != nil {
			return err
		}
		err = n.quorum.Load(s, v)
		var aside *quorum.AsideError
		if errors.As(err, &aside) {
			n.log.Warn("what was agreed about a slice is put aside", "slice", s, "why", aside.Why, "owner",
				aside.Now.Owner, "gen", aside.Now.Gen)
			n.count.replicaSetsAside.Add(1)
			asides[metaAside+s.String()] = v
			return nil
		}
		return err
	})
	if err == nil && len(asides) > 0 {
		err = n.store.SetMetas(asides)
	}
	if err != nil {
		return fmt.Errorf("what was agreed about slices: %w", err)
	}
	restored, marked, err := n.restored()
	if err != nil {
		return err
	}
	n.mine = map[partition.Slice]quorum.ReplicaSet{}
	diverged := n.quorum.Diverged()
	var foreign []partition.Slice
	for _, s := range n.slices {
		c := n.quorum.ReplicaSet(s)
		n.heldBefore = n.heldBefore || n.quorum.Has(s)
		if c.Owner == n.id {
			n.mine[s] = c
			n.replicator.changed(s)
		} else {
			foreign = append(foreign, s)
		}
		if c.Owner == n.id && len(c.Replicas) > 1 {
			n.store.Log.SetLogged(true, s)
		}
		if n.quorum.Has(s) || slices.Contains(diverged, s) {
			continue
		}
		if has, err := n.hasRows(s); err != nil {
			return err
		} else if has && !marked {
			n.quorum.MarkDiverged(s)
		} else if has {
			if err := n.store.Log.DropSlice(s); err != nil {
				return err
			}
		}
	}
	if !marked { // with what decide writes below; until then this is done again
		defer func() {
			if err == nil {
				err = n.store.SetMeta(metaRestored, []byte(restored))
			}
		}()
	}
	if err := n.store.Log.Relog(func(s partition.Slice) bool { _, mine := n.mine[s]; return mine }); err != nil {
		return err
	}
	n.store.Log.Fence(true, foreign...)
	n.index.Keep(slices.Collect(maps.Keys(n.mine)))
	return n.decide(func() {}) // cut what an owner has to cut
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

// decide makes one step of the agreement and its write one (package quorum).
// Steps that come while another is written down are taken together and written
// down with one sync, by the first of them: when a peer dies, hundreds come at
// once.
func (n *Node) decide(step func()) error {
	d := &decision{step: step}
	n.decisions.Lock()
	n.undecided = append(n.undecided, d)
	n.decisions.Unlock()
	n.deciding.Lock()
	defer n.deciding.Unlock()
	if d.done {
		return d.err
	}
	n.decisions.Lock()
	all := n.undecided
	n.undecided = nil
	n.decisions.Unlock()
	begun := time.Now()
	for _, d := range all {
		d.step()
	}
	stepped := time.Since(begun)
	err := n.record()
	if took := time.Since(begun); took > slowDecision {
		n.log.Debug("slow agreement", "steps", len(all), "stepping", stepped, "took", took)
	}
	for _, d := range all {
		d.done, d.err = true, err
	}
	return err
}

// record writes down what steps changed and draws the consequences, until
// nothing changes any more. n.deciding is held.
func (n *Node) record() error {
	var gained, lost []partition.Slice
	anew := map[partition.Slice]bool{}
	for {
		rows := n.quorum.Dirty()
		if len(rows) > 0 {
			metas := make(map[string][]byte, len(rows))
			for s, b := range rows {
				metas[metaKeep+s.String()] = b
			}
			if err := n.store.SetMetas(metas); err != nil {
				return fmt.Errorf("agreement: %w", err)
			}
		}
		for s := range rows {
			c := n.quorum.ReplicaSet(s)
			was, had := n.mine[s]
			if had && was.Compare(c) == 0 {
				continue
			}
			if had || c.Owner == n.id {
				n.log.Debug("agreed", "slice", s, "gen", c.Gen, "owner", c.Owner, "head", n.store.Log.LogHead(s))
			}
			switch has := c.Owner == n.id; {
			case had && !has:
				// From here on nothing is written to the slice but what its owner
				// replicates: its log is another's.
				n.store.Log.Fence(true, s)
				delete(n.mine, s)
				lost = append(lost, s)
			case has && !(had && was.SameFork(c) && was.Gen+1 == c.Gen):
				lost, gained = append(lost, s), append(gained, s) // its pace starts anew
				n.mine[s], anew[s] = c, true
			case has:
				n.mine[s] = c
			}
			// Only an owner writes a log; a replica's is the owner's.
			n.store.Log.SetLogged(c.Owner == n.id && (len(c.Replicas) > 1 || n.replicator.hasLearners(s)), s)
			n.replicator.changed(s)
		}
		uncut := n.quorum.Uncut()
		for s, head := range uncut {
			anew[s] = true
			if n.store.Log.LogHead(s) != head {
				if err := n.store.Log.ResetLog(s, head); err != nil {
					return fmt.Errorf("agreement: %w", err)
				}
			}
			n.quorum.Copied(s)
			n.replicator.logged(s) // it was passed over as long as this peer had no whole copy
		}
		if len(rows) == 0 && len(uncut) == 0 {
			break
		}
	}
	if len(anew) > 0 {
		if err := n.store.Log.Relog(func(s partition.Slice) bool { return anew[s] }); err != nil {
			return fmt.Errorf("agreement: %w", err)
		}
	}
	if len(lost)+len(gained) > 0 {
		n.addresses.gained(gained)
		n.store.Log.Fence(false, gained...)
		n.index.Keep(slices.Collect(maps.Keys(n.mine)))
		n.recrawl(lost, gained)
	}
	return nil
}

// recrawl tells the crawler and the forwarder which slices are owned now.
func (n *Node) recrawl(lost, gained []partition.Slice) {
	if n.crawler == nil || n.forward == nil {
		return // being opened
	}
	all := n.ownedNow()
	if len(lost) > 0 {
		out := make(map[partition.Slice]bool, len(lost))
		for _, s := range lost {
			out[s] = true
		}
		rest := make([]partition.Slice, 0, len(all))
		for _, s := range all {
			if !out[s] {
				rest = append(rest, s)
			}
		}
		n.crawler.SetSlices(rest)
	}
	if len(gained) > 0 {
		n.crawler.SetSlices(all)
		n.log.Debug("slices gained", "slices", len(gained))
	}
	n.forward.reread()
	n.kickLeases()
}

// ownedNow are the slices whose frontier this peer works. n.deciding is held.
func (n *Node) ownedNow() []partition.Slice {
	out := make([]partition.Slice, 0, len(n.mine))
	for s := range n.mine {
		if n.quorum.Has(s) {
			out = append(out, s)
		}
	}
	return out
}

// ours says whether this peer owns s, acting or not.
func (n *Node) ours(s partition.Slice) bool { return n.quorum.Owner(s) == n.id }

// acts says whether links of s may be acknowledged here now, fetches whether a
// fetch may begin in it.
func (n *Node) acts(s partition.Slice) bool { return n.quorum.Acts(s, time.Now()) }
func (n *Node) fetches(s partition.Slice) bool {
	return n.quorum.Fetches(s, time.Now()) && n.replicator.current(s)
}

// committed is crawler.Options.Settled.
func (n *Node) committed(s partition.Slice) <-chan struct{} { return n.replicator.committed(s) }

// awaitAdmissions waits for those that began while a slice was still acted in.
func (n *Node) awaitAdmissions() {
	n.deciding.Lock()
	defer n.deciding.Unlock()
}

// replicas are the replicas of s as known here, the owner first.
func (n *Node) replicas(s partition.Slice) []string {
	c := n.quorum.ReplicaSet(s)
	out := []string{c.Owner}
	for _, k := range c.Replicas {
		if k != c.Owner {
			out = append(out, k)
		}
	}
	return out
}

// assignment gives every slice to one live peer that keeps it, the owner when it
// lives (I8).
func (n *Node) assignment() map[string][]partition.Slice {
	out := n.quorum.Assignment()
	for id, ss := range out {
		if n.placement.Alive(id) || id == n.id {
			continue
		}
		var left []partition.Slice
		for _, s := range ss {
			other := ""
			for _, k := range n.quorum.ReplicaSet(s).Replicas {
				if other == "" && n.placement.Alive(k) {
					other = k
				}
			}
			if other == "" {
				left = append(left, s)
			} else {
				out[other] = append(out[other], s)
			}
		}
		if out[id] = left; len(left) == 0 {
			delete(out, id)
		}
	}
	return out
}
