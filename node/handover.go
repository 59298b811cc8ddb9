package node

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/node/replica/message"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
)

// Hand-over of slices (I4, I5, I7): the owner drives.
//
// When the ranking of members says that others should keep a slice, its owner
// replicates them a copy and the log behind it, while it goes on serving. When they
// have caught up it rests the slice (no new fetch begins), waits for the fetches
// under way, seals it (nothing is acknowledged), waits until its new replicas
// have the last of the log, and has the next ReplicaSet accepted. The new owner acts
// as soon as the replicas lease the slice to it, and waits out the delay of each
// site.
//
// A crash at any point leaves the old ReplicaSet in force, or an accepted proposal
// that is finished by whoever comes next.
const (
	planEvery  = 250 * time.Millisecond
	planSlices = 2048             // handed over at once
	restLimit  = 20 * time.Second // for the fetches under way
	sealLimit  = 3 * time.Second  // for the last of the log
	// ownerStays is how long a slice that came stays with its owner, when it is in use:
	// each change of owner costs its sites their delay, and who has just taken it
	// from a dead one is seldom the first of the ranking.
	ownerStays    = 3 * time.Second
	gossipFor     = 2 * time.Second // between two askings what others know
	reconcilePage = 1 << 20
)

// move is one slice's next ReplicaSet as its owner wants it.
type move struct {
	slice    partition.Slice
	owner    string
	replicas []string
}

// runHandover has the slices kept by whom the ranking says.
func (n *Node) runHandover(ctx context.Context) error {
	tick := time.NewTicker(planEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-n.viewChanged:
		case <-tick.C:
		}
		if n.placement.Expire(time.Now()) {
			if err := n.placementChanged(); err != nil {
				return err
			}
		}
		if err := n.handOver(ctx, n.plan(time.Now())); err != nil {
			return err
		}
	}
}

// plan compares who keeps each owned slice with who should. It has those taught
// who are about to keep, and answers what can be moved now. It runs four times a
// second over thousands of slices, nearly all of which are kept as they should:
// they cost one comparison. Once the swarm is done nothing is to move any more,
// whatever was about to.
func (n *Node) plan(now time.Time) []move {
	if n.placement.Frozen() {
		n.moving.Store(0)
		return nil
	}
	var out []move
	moving := 0
	leaving := n.leaving.Load()
	learning := n.replicator.withLearners()
	misplaced := n.quorum.OwnedBut(func(s partition.Slice, c quorum.ReplicaSet) bool {
		return !leaving && !learning[s] && n.placement.Ranks(s, c.Owner, c.Replicas)
	})
	for _, s := range misplaced {
		if !n.quorum.Acts(s, now) {
			continue
		}
		c := n.quorum.ReplicaSet(s)
		want := n.placement.Ranked(s)
		if leaving {
			want = append(slices.DeleteFunc(want, func(id string) bool { return id == n.id }), n.id)
		}
		n.replicator.setLearners(s,
			slices.DeleteFunc(slices.Clone(want), func(id string) bool { return c.Has(id) || !n.placement.Alive(id) }))
		m, learning := n.wish(s, c, want)
		stays := m.owner == c.Owner && sameSet(m.replicas, c.Replicas)
		if !stays || learning {
			moving++
		}
		if m.owner != c.Owner && !leaving && n.store.Log.LogHead(s) > 0 && now.Sub(n.crawler.Since(s)) < ownerStays {
			continue
		}
		if !stays && (!learning || leaving) {
			if out = append(out, m); len(out) == planSlices {
				break
			}
		}
	}
	n.moving.Store(int64(moving))
	return out
}

// wish is the ReplicaSet that follows from want, as far as the peers of it have a
// whole copy; learning says that some need one first. A peer that vanished keeps
// its place among the replicas while it is expected back, and is not given one.
func (n *Node) wish(s partition.Slice, c quorum.ReplicaSet, want []string) (m move, learning bool) {
	m = move{slice: s, owner: c.Owner}
	live := 0
	for _, id := range want {
		switch {
		case id == n.id, n.caughtUp(s, id) && n.placement.Alive(id):
			m.replicas = append(m.replicas, id)
			live++
		case n.placement.Alive(id) && !c.Has(id):
			learning = true
		case c.Has(id):
			m.replicas = append(m.replicas, id)
			learning = learning || n.placement.Alive(id) // sealed, the slice would wait for it in vain
		}
	}
	if len(m.replicas) > n.charter.Replicas { // leaving: this peer came on top
		m.replicas = m.replicas[:n.charter.Replicas]
	}
	for _, id := range m.replicas {
		if id == n.id || n.caughtUp(s, id) && n.placement.Alive(id) {
			m.owner = id
			break
		}
	}
	if live < len(m.replicas)/2+1 || len(m.replicas) == 0 {
		return move{slice: s, owner: c.Owner, replicas: c.Replicas}, learning
	}
	// Two replicas cannot do without each other: who leaves one of two leaves it
	// to the other alone.
	if n.leaving.Load() && m.owner != n.id && len(m.replicas) == 2 {
		m.replicas = []string{m.owner}
	}
	return m, learning
}

// caughtUp says whether id has s but for what is on its way.
func (n *Node) caughtUp(s partition.Slice, id string) bool {
	const near = 64
	head, ok := n.replicator.at(s, id)
	return ok && head+near >= n.store.Log.LogHead(s)
}

func sameSet(a, b []string) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x string) bool { return !slices.Contains(b, x) })
}

// handOver makes moves.
func (n *Node) handOver(ctx context.Context, moves []move) error {
	ready := n.rest(moves) // with no moves, what rested goes on
	var used, empty []move
	for _, m := range ready {
		if n.store.Log.LogHead(m.slice) > 0 {
			used = append(used, m)
		} else {
			empty = append(empty, m)
		}
	}
	return errors.Join(n.giveAway(ctx, used), n.giveAway(ctx, empty))
}

// giveAway makes moves of slices that are at rest.
func (n *Node) giveAway(ctx context.Context, ready []move) error {
	if len(ready) == 0 {
		return nil
	}
	for _, m := range ready {
		n.quorum.Seal(m.slice)
	}
	n.awaitAdmissions() // those that began before are in the log now
	ready = n.awaitReplicas(ctx, ready)
	var proposals []quorum.Proposal
	err := n.decide(func() {
		for _, m := range ready {
			if p, ok := n.quorum.Propose(m.slice, m.owner, m.replicas); ok {
				proposals = append(proposals, p)
			} else {
				n.quorum.Wake(m.slice)
			}
		}
	})
	if err != nil {
		return err
	}
	n.log.Debug("hand-over", "slices", len(proposals))
	return n.accept(ctx, proposals)
}

// rest stops fetching in the slices that get another owner and answers those in
// which no fetch is under way. What does not come to rest in time goes on.
func (n *Node) rest(moves []move) (ready []move) {
	now := time.Now()
	resting := map[partition.Slice]time.Time{}
	for _, m := range moves {
		if m.owner == n.id {
			ready = append(ready, m)
			continue
		}
		since, was := n.resting[m.slice]
		if !was {
			since = now
		}
		resting[m.slice] = since
		n.quorum.Rest(m.slice)
		if n.crawler.Busy(m.slice) == 0 || now.Sub(since) > restLimit {
			ready = append(ready, m)
		}
	}
	for s := range n.resting {
		if _, still := resting[s]; !still {
			n.quorum.Wake(s)
		}
	}
	n.resting = resting
	return ready
}

// awaitReplicas waits until the live ones of each move's replicas have the whole
// log, and wakes those slices of which they do not.
func (n *Node) awaitReplicas(ctx context.Context, moves []move) (ready []move) {
	ctx, cancel := context.WithTimeout(ctx, sealLimit)
	defer cancel()
	missing := func(m move) bool {
		head := n.store.Log.LogHead(m.slice)
		have := 0
		for _, id := range m.replicas {
			at, ok := n.replicator.at(m.slice, id)
			if id == n.id || ok && at >= head {
				have++
			} else if id == m.owner || n.placement.Alive(id) {
				return true
			}
		}
		return have < len(m.replicas)/2+1
	}
	for {
		n.replicator.mu.Lock()
		progress := n.replicator.progress
		n.replicator.mu.Unlock()
		if !slices.ContainsFunc(moves, missing) {
			return moves
		}
		select {
		case <-ctx.Done():
			for _, m := range moves {
				if missing(m) {
					n.quorum.Wake(m.slice)
				} else {
					ready = append(ready, m)
				}
			}
			return ready
		case <-progress:
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// HandOver gives this peer's slices to the other replicas, so that it can stop
// without the crawl stopping anywhere; until ctx ends. It answers how many it
// could not give away.
func (n *Node) HandOver(ctx context.Context) int {
	live, _ := n.placement.Views()
	if len(live.Members()) < 2 {
		return 0
	}
	n.leaving.Store(true)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for said := (time.Time{}); ; {
		left := len(n.quorum.Owned())
		if left == 0 {
			return 0
		}
		if time.Since(said) >= time.Second {
			said = time.Now()
			n.log.Info("stopping: this peer's slices are handed to other peers", "left", left)
		}
		select {
		case <-ctx.Done():
			return left
		case <-tick.C:
		}
	}
}

// runTidying asks others what they know, reconciles copies of dead forks with the
// winner's, and drops copies that nobody needs.
func (n *Node) runTidying(ctx context.Context) error {
	for {
		every := gossipFor
		if !n.informed.Load() || n.quorum.InDoubt() {
			every = 250 * time.Millisecond
		}
		if !call.Sleep(ctx, every, n.tidyKick) {
			return ctx.Err()
		}
		if err := n.askReplicaSets(ctx); err != nil {
			return err
		}
		if err := n.askAbout(ctx); err != nil {
			return err
		}
		if err := n.reconcile(ctx); err != nil {
			return err
		}
		if err := n.dropSurplus(ctx); err != nil {
			return err
		}
		if err := n.tidyTrash(ctx, time.Now()); err != nil {
			return err
		}
		if err := n.trimLogs(); err != nil {
			return err
		}
	}
}

// askReplicaSets hears what a member chosen at random knows; the founder at first,
// whose word counts with who knows nothing.
func (n *Node) askReplicaSets(ctx context.Context) error {
	live, _ := n.placement.Views()
	others := slices.DeleteFunc(slices.Clone(live.Members()), func(m partition.Member) bool { return m.ID == n.id })
	if len(others) == 0 {
		return nil
	}
	peer := others[rand.IntN(len(others))].ID
	if !n.informed.Load() && n.charter.Founder != n.id && n.placement.Alive(n.charter.Founder) {
		peer = n.charter.Founder
	}
	for after := uint64(0); ; {
		req := &wire.Configs{Want: true, Digest: n.quorum.Digest(), After: after}
		resp, err := n.call(ctx, peer, &wire.Request{Body: &wire.Request_Configs{Configs: req}})
		if err != nil {
			n.log.Debug("asking for configs", "peer", peer, "err", err)
			return nil
		}
		a := resp.GetConfigs()
		if known := message.SetsOf(a.GetKnown()); len(known) > 0 {
			if err := n.hear(peer, known); err != nil {
				return err
			}
		}
		if a.GetNext() <= after {
			n.informed.Store(true)
			return nil
		}
		after = a.Next
	}
}

// askedAbout is how many slices one peer is asked about at once.
const askedAbout = wire.MaxConfigs / 2

// askAbout asks those whose word would count, or who are said to keep, about slices
// of which something was heard that does not count. Each time it also asks one of
// those who kept a slice that was adopted since: they may be back. That must not wait
// for the end of all doubts, which whoever goes on lying decides.
func (n *Node) askAbout(ctx context.Context) error {
	asks := n.quorum.Doubts()
	maps.DeleteFunc(asks, func(peer string, _ []partition.Slice) bool { return !n.placement.Alive(peer) })
	for peer, ss := range n.quorum.Left() {
		if n.placement.Alive(peer) {
			asks[peer] = append(asks[peer], ss...)
			slices.Sort(asks[peer])
			asks[peer] = slices.Compact(asks[peer])
			break
		}
	}
	answers := make(chan reported)
	var asking sync.WaitGroup
	for peer, ss := range asks {
		asking.Go(func() {
			for page := range slices.Chunk(ss, askedAbout) {
				ctx, cancel := context.WithTimeout(ctx, message.BallotTimeout)
				req := &wire.Configs{Want: true, Digest: n.quorum.Digest(),
					Decided: message.Sets(n.quorum.Of(page...))}
				resp, err := n.call(ctx, peer, &wire.Request{Body: &wire.Request_Configs{Configs: req}})
				cancel()
				if err != nil {
					n.log.Debug("asking about configs", "peer", peer, "err", err)
					return
				}
				answers <- reported{peer, message.SetsOf(resp.GetConfigs().GetKnown())}
			}
		})
	}
	go func() { asking.Wait(); close(answers) }()
	var failed error
	for a := range answers {
		failed = errors.Join(failed, n.hear(a.from, a.words))
	}
	return failed
}

// reported is what a peer says of slices.
type reported struct {
	from  string
	words []quorum.SliceReplicas
}

// hear takes the word of a peer about slices, as far as it counts (package quorum).
func (n *Node) hear(from string, words []quorum.SliceReplicas) error {
	if len(words) == 0 {
		return nil
	}
	doubted := n.quorum.InDoubt()
	if err := n.decide(func() { n.quorum.Hear(from, time.Now(), words...) }); err != nil {
		return err
	}
	if !doubted && n.quorum.InDoubt() {
		select {
		case n.tidyKick <- struct{}{}:
		default:
		}
	}
	return nil
}

// reconcile sends the rows of each copy of a dead fork to the slice's owner and
// forgets the copy when all have arrived. A crash before the rows are gone leaves
// rows without a copy, which are dropped at the next start.
func (n *Node) reconcile(ctx context.Context) error {
	for _, s := range n.quorum.Diverged() {
		stands := n.quorum.Stands(s)
		c := n.quorum.ReplicaSet(s)
		if c.Owner == n.id || !n.placement.Alive(c.Owner) {
			continue
		}
		sent, err := n.sendCopy(ctx, c.Owner, s)
		if err != nil {
			return err
		}
		if !sent {
			continue
		}
		drop := !c.Has(n.id)
		if drop && !n.keepTrash(s, whyReconciled) {
			continue
		}
		// What is known of s may have changed meanwhile, and changed back: then the
		// copy may have grown, or it is the one that counts.
		united := false
		err = n.decide(func() { united = n.quorum.ForgetDiverged(s, stands) })
		if err == nil && united {
			n.log.Info("copy of a dead fork reconciled", "slice", s, "owner", c.Owner)
			if drop {
				err = n.store.Log.DropSlice(s)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sendCopy sends all rows of s here to peer; false when it does not take them.
func (n *Node) sendCopy(ctx context.Context, peer string, s partition.Slice) (bool, error) {
	var after []byte
	for {
		rows, next, err := n.store.Log.SliceRows(s, after, reconcilePage)
		if err != nil {
			return false, err
		}
		if len(rows) > 0 && !n.sendRows(ctx, peer, s, message.Rows(rows)) {
			return false, nil
		}
		if len(next) == 0 {
			return true, nil
		}
		after = next
	}
}

func (n *Node) sendRows(ctx context.Context, peer string, s partition.Slice, rows []*wire.Row) bool {
	_, err := n.call(ctx, peer,
		&wire.Request{Body: &wire.Request_Unite{Unite: &wire.Unite{Slice: uint64(s), Rows: rows}}})
	if err != nil {
		n.log.Debug("reconciling", "peer", peer, "slice", s, "err", err)
	}
	return err == nil
}

// dropSurplus drops copies of slices that others keep, when a majority of their
// replicas says that it has them, the owner among it: a peer that was stopped for a while
// does not know what was agreed meanwhile, and its copy may be counted on. What is
// dropped stays in the trash for a while.
func (n *Node) dropSurplus(ctx context.Context) error {
	for _, s := range n.quorum.Surplus(time.Now()) {
		c, asked := n.quorum.ReplicaSet(s), time.Now()
		if !n.placement.Alive(c.Owner) {
			continue
		}
		if !n.haveIt(ctx, s, c) || !n.keepTrash(s, whySurplus) {
			continue
		}
		dropped := false
		err := n.decide(func() { dropped = n.quorum.ForgetSurplus(s, c, asked) })
		if err == nil && dropped {
			err = n.store.Log.DropSlice(s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// haveIt asks the replicas of s by c whether this peer may drop its copy: the owner first,
// without whose word the others are not asked.
func (n *Node) haveIt(ctx context.Context, s partition.Slice, c quorum.ReplicaSet) bool {
	have, asked := 0, map[string]bool{}
	for _, k := range append([]string{c.Owner}, c.Replicas...) {
		if asked[k] {
			continue
		}
		asked[k] = true
		if n.placement.Alive(k) {
			ask := &wire.Compare{Slice: uint64(s), Drop: message.Set(s, c)}
			resp, err := n.call(ctx, k, &wire.Request{Body: &wire.Request_Compare{Compare: ask}})
			if err == nil && resp.GetCompare().GetDrop() {
				have++
			}
		}
		if k == c.Owner && have == 0 {
			return false
		}
		if have >= c.Quorum() {
			return true
		}
	}
	return false
}

// trimLogs keeps of each log what a peer that was away for a moment needs.
func (n *Node) trimLogs() error {
	const long, kept = 4096, 1024
	for _, s := range n.quorum.Kept() {
		if entries, _ := n.store.Log.LogLen(s); entries < long {
			continue
		}
		if err := n.store.Log.TrimLog(s, n.store.Log.LogHead(s)-kept); err != nil {
			return err
		}
	}
	return nil
}

// persistPlacement writes down who the members are.
func (n *Node) persistPlacement() error {
	b, err := n.placement.Remember()
	if err != nil {
		return err
	}
	return n.store.SetMeta(metaPlacement, b)
}
