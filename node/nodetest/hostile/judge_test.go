package hostile_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
)

// chain is the truth about one slice: the ReplicaSets that were agreed, as far as honest peers
// took part. It is honest while most replicas of its last ReplicaSet are honest.
type chain struct {
	last   quorum.ReplicaSet
	known  map[string]bool   // names of all of them
	votes  map[string]*votes // of successors of the last, by name
	before map[string]*votes // of successors of the one before the last, which include the last
	former string            // the name of the one before the last
	split  bool              // two were decided: see weakness "a replica votes for two"
	rows   map[string]bool   // rows that honest replicas had at the last count, while honest
	doubt  map[string]int    // samples in a row in which a peer believed something false
	story  []string          // the history of the last few ReplicaSets, for the reader of a fault
}

// votes has the honest peers that accepted a successor.
type votes struct {
	base, next quorum.ReplicaSet
	by         map[string]bool
}

func short(id string) string { return id[max(0, len(id)-6):] }

func nameOf(c quorum.ReplicaSet) string {
	out := fmt.Sprintf("%d/%s/%d/%s:", c.Epoch, short(c.Fork), c.Gen, short(c.Owner))
	for _, k := range c.Replicas {
		out += " " + short(k)
	}
	return out
}

// judge observes what honest peers send each other and checks what they believe against it.
type judge struct {
	honest map[string]*nodetest.SimPeer
	logf   func(format string, args ...any)
	logged int

	mu     sync.Mutex
	chains map[partition.Slice]*chain

	samples, honestSlices, served, unserved, hostileOwned int
	lost, wrong, misbelieved, splits                      int
	fewest                                                int
}

func newJudge(honest []*nodetest.SimPeer, log func(string, ...any)) *judge {
	j := &judge{honest: map[string]*nodetest.SimPeer{}, logf: log, chains: map[partition.Slice]*chain{},
		fewest: 1 << 30}
	for _, p := range honest {
		j.honest[p.ID] = p
		log("%s, which is honest, is %s", p.Name, short(p.ID))
	}
	n := honest[0].Node()
	for _, s := range n.Slices() { // only honest peers have agreed on this
		c := n.Agreed(s)
		j.chains[s] = &chain{last: c, known: map[string]bool{nameOf(c): true}, votes: map[string]*votes{},
			rows: map[string]bool{}, doubt: map[string]int{}}
	}
	return j
}

// log logs the first few faults.
func (j *judge) log(format string, args ...any) {
	if j.logged++; j.logged <= 12 {
		j.logf("sample %d, %s: "+format, append([]any{j.samples, time.Now().Format(time.TimeOnly)}, args...)...)
	}
}

func (j *judge) isHonest(c quorum.ReplicaSet) bool {
	n := 0
	for _, k := range c.Replicas {
		if j.honest[k] != nil {
			n++
		}
	}
	return n >= c.Quorum()
}

func configOf(c *wire.Config) quorum.ReplicaSet {
	out := quorum.ReplicaSet{Epoch: c.GetEpoch(), Fork: c.GetFork(), Gen: c.GetGen(), Owner: c.GetOwner(),
		Replicas: c.GetKeepers()}
	for _, s := range c.GetStarts() {
		out.Starts = append(out.Starts, quorum.Start{Gen: s.Gen, Pos: s.Pos})
	}
	return out
}

// sent is called with each request of an honest peer. What the peer reports as decided, it
// decided itself, with the votes of a majority.
func (j *judge) sent(from string, req *wire.Request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	// it has accepted what it asks others to accept
	if b := req.GetBallots(); b != nil && b.Accept {
		for _, p := range b.Proposals {
			j.vote(from, partition.Slice(p.Base.GetSlice()), configOf(p.Base), configOf(p.Next))
		}
	}
	for _, w := range req.GetConfigs().GetDecided() {
		ch := j.chains[partition.Slice(w.Slice)]
		if c := configOf(w); ch != nil && ch.last.Has(from) && c.SameFork(ch.last) && c.Gen == ch.last.Gen+1 {
			j.advance(ch, c, j.nick(from)+" says that it was decided")
		}
	}
}

// answered is called with each response of an honest peer.
func (j *judge) answered(by string, req *wire.Request, resp *wire.Response) {
	b, a := req.GetBallots(), resp.GetBallots()
	if b == nil || a == nil || !b.Accept {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, p := range b.Proposals {
		if i < len(a.Promises) && a.Promises[i].Ok {
			j.vote(by, partition.Slice(p.Base.GetSlice()), configOf(p.Base), configOf(p.Next))
		}
	}
}

// vote counts an honest peer's acceptance of a successor of the ReplicaSet that it believes.
func (j *judge) vote(by string, s partition.Slice, base, next quorum.ReplicaSet) {
	ch := j.chains[s]
	if ch == nil || !base.Has(by) || !next.SameFork(base) || next.Gen != base.Gen+1 {
		return
	}
	j.believed(ch, by, base)
	in := ch.votes
	switch nameOf(base) {
	case nameOf(ch.last):
	case ch.former:
		in = ch.before
	default:
		return
	}
	v := in[nameOf(next)]
	if v == nil {
		v = &votes{base: base, next: next, by: map[string]bool{}}
		in[nameOf(next)] = v
	}
	if v.by[by] = true; len(v.by) >= base.Quorum() && nameOf(base) == nameOf(ch.last) {
		j.advance(ch, next, "accepted by "+j.nicks(v))
	}
}

// possible reports whether a successor of the last ReplicaSet was decided if all hostile
// replicas accepted it. They may have accepted another one as well.
func (j *judge) possible(v *votes) bool {
	n := len(v.by)
	for _, k := range v.base.Replicas {
		if j.honest[k] == nil {
			n++
		}
	}
	return n >= v.base.Quorum()
}

// believed is called with what an honest peer believes is decided. If hostile replicas may have
// accepted it, it counts as decided.
func (j *judge) believed(ch *chain, by string, c quorum.ReplicaSet) {
	if v := ch.votes[nameOf(c)]; v != nil && j.possible(v) {
		j.advance(ch, c, "accepted by "+j.nicks(v)+" and hostile replicas, as "+j.nick(by)+" believes")
	}
}

func (j *judge) nicks(v *votes) string {
	var out []string
	for id := range v.by {
		out = append(out, j.nick(id))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (j *judge) nick(id string) string {
	if p := j.honest[id]; p != nil {
		return p.Name
	}
	return short(id)
}

// told is how many ReplicaSets of a slice the report of a fault shows.
const told = 8

func (j *judge) advance(ch *chain, c quorum.ReplicaSet, why string) {
	line := fmt.Sprintf("%s %s: %s", time.Now().Format(time.TimeOnly), nameOf(c), why)
	ch.story = append(ch.story[max(0, len(ch.story)-told+1):], line)
	if j.isHonest(ch.last) != j.isHonest(c) {
		ch.rows = map[string]bool{}
	}
	ch.before, ch.votes, ch.former = ch.votes, map[string]*votes{}, nameOf(ch.last)
	ch.last, ch.known[nameOf(c)] = c, true
}

// rivals reports whether hostile replicas may have made c a successor of the one before the
// last, next to the last.
func (j *judge) rivals(ch *chain, c quorum.ReplicaSet) bool {
	v := ch.before[nameOf(c)]
	return v != nil && nameOf(c) != nameOf(ch.last) && j.possible(v)
}

// patience is how many samples in a row a peer may believe what the judge does not know yet.
// The message may be on its way.
const patience = 3

// sample compares what honest peers believe and do with the truth.
func (j *judge) sample() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.samples++
	acting := map[partition.Slice][]string{}
	for id, p := range j.honest {
		for _, s := range p.Node().Acting() {
			acting[s] = append(acting[s], id)
		}
	}
	honest := 0
	for s, ch := range j.chains {
		for id, p := range j.honest {
			c := p.Node().Agreed(s)
			if j.believed(ch, id, c); j.rivals(ch, c) && !ch.split {
				ch.split, ch.rows = true, map[string]bool{}
				j.splits++
				j.log("%s: %s believes %s beside %s, for which hostile replicas voted, too; before: %q",
					s, p.Name, nameOf(c), nameOf(ch.last), ch.story)
			}
		}
		if !j.isHonest(ch.last) || ch.split {
			j.follow(s, ch)
			continue
		}
		honest++
		for id, p := range j.honest {
			c := p.Node().Agreed(s)
			if ch.known[nameOf(c)] {
				ch.doubt[id] = 0
				continue
			}
			if ch.doubt[id]++; ch.doubt[id] == patience {
				j.misbelieved++
				j.log("%s: %s believes %s, true is %s; before: %q", s, p.Name, nameOf(c), nameOf(ch.last), ch.story)
			}
		}
		for _, id := range acting[s] {
			if id != ch.last.Owner {
				j.wrong++
				j.log("%s: %s acts, true is %s; before: %q", s, j.honest[id].Name, nameOf(ch.last), ch.story)
			}
		}
		switch {
		case j.honest[ch.last.Owner] == nil:
			j.hostileOwned++
		case slices.Contains(acting[s], ch.last.Owner):
			j.served++
		default:
			j.unserved++
		}
	}
	j.honestSlices += honest
	j.fewest = min(j.fewest, honest)
}

// follow handles a slice in which hostile peers have the majority, or that they split. It takes
// as true the newest ReplicaSet that an honest peer believes. The chain is honest again once
// all honest peers believe the same and are the majority in it.
func (j *judge) follow(s partition.Slice, ch *chain) {
	newest, all := ch.last, map[string]quorum.ReplicaSet{}
	for _, p := range j.honest {
		c := p.Node().Agreed(s)
		if all[nameOf(c)] = c; c.Compare(newest) > 0 {
			newest = c
		}
	}
	if ch.split && len(all) == 1 { // they have agreed on one of the two, or on a successor of it
		newest = slices.Collect(maps.Values(all))[0]
	}
	if (newest.Compare(ch.last) > 0 || ch.split) && (len(all) == 1 || !j.isHonest(newest)) {
		ch.split = false
		j.advance(ch, newest, "the newest that is believed, as hostile peers had the majority, or voted for two")
	}
}

// count looks for rows that honest replicas of a slice had and that none of them has any more.
// The tables do not include what the crawl deletes by itself.
func (j *judge) count(rows map[string]nodetest.Rows) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := map[partition.Slice]map[string]bool{}
	for _, all := range rows {
		for k := range all {
			if k[0] == 'K' || k[0] == 'R' || k[0] == 'S' {
				s := nodetest.SliceOfRow(k)
				if now[s] == nil {
					now[s] = map[string]bool{}
				}
				now[s][k] = true
			}
		}
	}
	for s, ch := range j.chains {
		if !j.isHonest(ch.last) || ch.split {
			continue
		}
		for k := range ch.rows {
			if !now[s][k] {
				j.lost++
				j.log("%s: the row %.100q is lost", s, k)
			}
		}
		ch.rows = now[s]
	}
}

func (j *judge) report(real time.Duration) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	share := func(n, of int) float64 { return 100 * float64(n) / float64(max(1, of)) }
	return fmt.Sprintf("%d samples, honest slices %.1f of %d on average, %d at least; of them owned by an honest peer %.2f %%, of these served %.3f %%; "+
		"rows lost %d, acted in by who should not %d, believed though not true %d; "+
		"slices split by a replica that voted for two %d; took %s",
		j.samples, float64(j.honestSlices)/float64(max(1, j.samples)), len(j.chains), j.fewest,
		share(j.served+j.unserved, j.honestSlices),
		share(j.served, j.served+j.unserved), j.lost, j.wrong, j.misbelieved, j.splits, real.Round(time.Second))
}
