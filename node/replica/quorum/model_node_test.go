package quorum

import (
	"slices"
	"strings"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// entry is one write of a log; it is unique in the world.
type entry int

// copyState is a peer's copy of one slice. Its Go slices of entries are shared, and nothing
// writes to them below their length.
type copyState struct {
	log  []entry
	rows []entry
}

func (c *copyState) add(es ...entry) {
	for _, e := range es {
		if !slices.Contains(c.rows, e) {
			c.rows = append(c.rows, e)
		}
	}
}

// node is one peer: its store, its Machine, and its unfinished procedures.
type node struct {
	w            *world
	i            int
	id           string
	rate, offset time.Duration // of its clock: rate is in thousandths
	up, paused   bool
	inc          int
	backlog      []func()

	rows      map[partition.Slice][]byte // durable, like disk
	disk, mem []copyState

	m         *Machine
	campaigns map[partition.Slice]*campaign
	tallies   map[partition.Slice]*tally
	moves     map[partition.Slice]*move
	ships     map[partition.Slice]*shipping
	waits     []*uniting
	fed       map[partition.Slice]int
	asked     time.Duration        // when it last asked for leases
	met       map[string]time.Time // when it last got a message from each peer, by its own clock
}

// After goneAfter the model treats a silent replica as gone. A peer that knows nothing but the
// founder treats a silent founder as gone after goneAtOnce.
const (
	goneAfter  = 25 * time.Second
	goneAtOnce = 3 * time.Second
)

// gone is the function that the node passes to Confirm.
func (n *node) gone(id string, first bool) bool {
	last, ok := n.met[id]
	if !ok {
		n.met[id] = n.clock()
		return false
	}
	if first {
		return n.clock().Sub(last) > goneAtOnce
	}
	// This is longer than any cut, because a peer cut off for longer is not safe from liars.
	if n.w.liars {
		return n.clock().Sub(last) > 4*goneAfter
	}
	return n.clock().Sub(last) > goneAfter
}

// clock returns the time of the peer's clock.
func (n *node) clock() time.Time {
	return time.Unix(1e9, 0).Add(n.offset + n.w.now + n.w.now/1000*n.rate)
}

func (n *node) slot(s partition.Slice) int { return slices.Index(n.w.slices, s) }

func (n *node) start() {
	n.inc++
	n.up = true
	if n.inc > 1 {
		n.w.stats["restarted"]++
	}
	copy(n.mem, n.disk)
	for i := range n.mem {
		n.mem[i].log, n.mem[i].rows = slices.Clip(n.mem[i].log), slices.Clip(n.mem[i].rows)
	}
	n.campaigns, n.tallies, n.moves = map[partition.Slice]*campaign{}, map[partition.Slice]*tally{},
		map[partition.Slice]*move{}
	n.ships, n.waits, n.fed = map[partition.Slice]*shipping{}, nil, map[partition.Slice]int{}
	delete(n.w.checks.clocks, n.id)
	n.asked = -time.Hour
	n.met = map[string]time.Time{}
	n.m = New(Options{Self: n.id, Founder: "a", Slices: n.w.slices, Started: n.clock(),
		Head: func(s partition.Slice) uint64 { return uint64(len(n.mem[n.slot(s)].log)) }})
	for s, b := range n.rows {
		if err := n.m.Load(s, b); err != nil {
			n.w.fault = err.Error()
		}
	}
}

func (n *node) crash() { n.up, n.backlog = false, nil }

func (n *node) resume() {
	n.paused = false
	for _, run := range n.backlog {
		n.w.after(n.w.between(0, 50*time.Millisecond), run)
	}
	n.backlog = nil
}

// step runs one atomic step at n.
func (n *node) step(inc int, name string, run func()) {
	switch {
	case !n.up || inc != 0 && inc != n.inc:
	case n.paused:
		n.backlog = append(n.backlog, func() { n.step(inc, name, run) })
	default:
		if !strings.HasSuffix(name, " tick") {
			n.w.log("%s", name)
		}
		run()
		n.persist()
	}
}

// persist makes durable what the Machine returns in Dirty, and everything written before it:
// both share one write-ahead log.
func (n *node) persist() {
	dirty := n.m.Dirty()
	if len(dirty) == 0 {
		return
	}
	for s, b := range dirty {
		n.rows[s] = b
	}
	n.sync()
}

func (n *node) sync() { copy(n.disk, n.mem) }

func (n *node) durable(s partition.Slice) uint64 {
	if n.w.rule == shipVolatile {
		return n.m.head(s)
	}
	return uint64(len(n.disk[n.slot(s)].log))
}

func (n *node) truncate(s partition.Slice, to uint64) {
	c := &n.mem[n.slot(s)]
	if uint64(len(c.log)) > to {
		n.w.stats["cut a log"]++
		c.log = c.log[:to:to]
	}
}

// ticks runs the peer's periodic work.
func (n *node) ticks() {
	n.w.after(n.w.between(150*time.Millisecond, 300*time.Millisecond), n.ticks)
	n.step(0, n.id+" tick", n.tick)
}

func (n *node) tick() {
	w := n.w
	if w.now-n.asked >= LeaseRenew*9/10 {
		n.asked = w.now
		for _, k := range n.m.Lessors() {
			n.ask(w.byID(k), false)
		}
	}
	uncut := n.m.Uncut()
	for _, s := range w.slices {
		if to, ok := uncut[s]; ok {
			n.truncate(s, to)
			n.m.Copied(s)
			n.persist()
		}
	}
	n.m.Confirm(n.clock(), n.gone)
	for _, s := range n.m.Lost(n.clock(), n.wait) {
		n.campaign(s)
	}
	for _, p := range n.m.Unfinished() {
		n.propose(p)
	}
	for _, s := range n.m.Owned() {
		n.write(s)
		n.replicate(s)
		n.move(s)
	}
	for _, s := range n.m.Surplus(n.clock()) {
		n.drop(s)
	}
	for _, s := range n.m.Diverged() {
		n.reconcile(s)
	}
	for _, s := range n.m.Bereft(n.clock(), 10*time.Second) {
		n.m.Adopt(s, n.m.ReplicaSet(s))
	}
	if w.adopt && w.faulty && w.chance(1) && w.chance(20) {
		s := w.slices[w.rng.IntN(len(w.slices))]
		w.stats["adopted"]++
		w.log("%s adopts %s", n.id, s)
		n.m.Adopt(s, n.m.ReplicaSet(s))
	}
	if w.chance(30) {
		n.gossip()
	}
	if w.chance(w.synced) {
		n.sync()
	}
}

// wait depends on the peer's rank among the replicas.
func (n *node) wait(_ partition.Slice, c ReplicaSet, _ bool) time.Duration {
	return time.Duration(slices.Index(c.Replicas, n.id)) * 300 * time.Millisecond
}

func (n *node) ask(k *node, list bool) {
	a := n.m.AskFor(k.id, list, n.clock())
	wire := Ask{Count: a.Count, Digest: a.Digest, List: a.List, News: a.News}
	call(n, k, "ask", func() Grant { return k.m.Grant(n.id, wire, k.clock()) }, func(g Grant) {
		if n.m.Granted(k.id, a, g) {
			n.ask(k, true)
		}
	})
}

// gossip exchanges knowledge with a random peer.
func (n *node) gossip() {
	k := n.w.nodes[n.w.rng.IntN(len(n.w.nodes))]
	if k == n {
		return
	}
	digest := n.m.Digest()
	call(n, k, "gossip", func() []SliceReplicas {
		if k.m.Digest() == digest {
			return nil
		}
		return k.m.Known(0, 100)
	}, func(cs []SliceReplicas) { n.m.Hear(k.id, n.clock(), cs...) })
	doubts := n.m.Doubts()
	if len(doubts) == 0 {
		doubts = n.m.Left()
	}
	for _, k := range n.w.nodes {
		if ss := doubts[k.id]; len(ss) > 0 {
			n.confirm(k, ss)
		}
	}
}

// confirm tells k what is known here about some slices and asks what k knows.
func (n *node) confirm(k *node, ss []partition.Slice) {
	mine := n.m.Of(ss...)
	call(n, k, "confirm", func() []SliceReplicas {
		k.m.Hear(n.id, k.clock(), mine...)
		return k.m.Of(ss...)
	}, func(cs []SliceReplicas) { n.m.Hear(k.id, n.clock(), cs...) })
}

func (n *node) tell(k *node, cs ...SliceReplicas) {
	n.w.send(n, k, 0, "tell", func() { k.m.Hear(n.id, k.clock(), cs...) })
}

// campaign is a running take-over.
type campaign struct {
	p        Proposal
	promises map[string]Promise
	began    time.Duration
	proposed bool
}

func (n *node) campaign(s partition.Slice) {
	if c := n.campaigns[s]; c != nil && n.w.now-c.began < 2*time.Second {
		return
	}
	p, ok := n.m.Campaign(s)
	if !ok {
		return
	}
	n.w.log("%s campaigns for %s with %v on %v", n.id, s, p.Ballot, p.Base)
	c := &campaign{p: p, promises: map[string]Promise{}, began: n.w.now}
	n.campaigns[s] = c
	for _, id := range p.Base.Replicas {
		k := n.w.byID(id)
		if k == n {
			n.promised(c, n.id, n.prepare(p))
			continue
		}
		call(n, k, "prepare", func() Promise { return k.prepare(p) }, func(r Promise) { n.promised(c, k.id, r) })
	}
}

func (n *node) prepare(p Proposal) Promise {
	r := n.m.Prepare(p, n.clock())
	n.persist()
	n.w.checks.prepared(n.w, n, p, r)
	return r
}

func (n *node) accept(p Proposal) Promise {
	r := n.m.Accept(p, n.clock())
	n.persist()
	n.w.checks.accepted(n.w, n, p, r)
	return r
}

// promised processes k's promise for c.
func (n *node) promised(c *campaign, k string, r Promise) {
	s := c.p.Slice
	if n.campaigns[s] != c || c.proposed || n.refused(s, k, r) {
		return
	}
	c.promises[k] = r
	var all []Promise
	for _, id := range c.p.Base.Replicas { // in order, so that the seed determines everything
		if p, ok := c.promises[id]; ok {
			all = append(all, p)
		}
	}
	p, ok := n.m.Choose(c.p, all)
	if !ok {
		return
	}
	c.proposed = true
	n.w.log("%s chose %v on %v", n.id, p.Next, p.Base)
	n.propose(p)
}

// refused learns from a response that is not OK.
func (n *node) refused(s partition.Slice, k string, r Promise) bool {
	if r.OK {
		return false
	}
	if r.Newer != nil {
		n.m.Hear(k, n.clock(), SliceReplicas{s, *r.Newer})
	}
	if r.Promised.N > 0 {
		n.m.Refused(s, r.Promised)
	}
	return true
}

// tally records which replicas accepted.
type tally struct {
	p  Proposal
	by []string
}

// propose sends a proposal to every replica, first to this peer itself.
func (n *node) propose(p Proposal) {
	t := n.tallies[p.Slice]
	if t == nil || t.p.Base.Compare(p.Base) != 0 || t.p.Ballot != p.Ballot {
		t = &tally{p: p}
		n.tallies[p.Slice] = t
	}
	for _, id := range p.Base.Replicas {
		k := n.w.byID(id)
		if k == n {
			n.counted(t, n.id, n.accept(p))
			continue
		}
		call(n, k, "accept", func() Promise { return k.accept(p) }, func(r Promise) { n.counted(t, k.id, r) })
	}
}

func (n *node) counted(t *tally, k string, r Promise) {
	p := t.p
	if n.refused(p.Slice, k, r) || slices.Contains(t.by, k) {
		return
	}
	t.by = append(t.by, k)
	if !p.Decided(t.by) {
		return
	}
	if len(n.m.Learn(SliceReplicas{p.Slice, p.Next})) == 0 {
		return
	}
	n.persist()
	n.w.log("%s decided %v for %s", n.id, p.Next, p.Slice)
	if p.Ballot.N > 1 {
		n.w.stats["taken over"]++
		if p.Next.Owner != p.Base.Owner {
			n.w.stats["taken over from another"]++
		}
	} else {
		n.w.stats["handed over"]++
	}
	for _, k := range n.w.nodes {
		if k != n {
			n.tell(k, n.m.Of(p.Slice)...)
		}
	}
}
