package hostile_test

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/keeping"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/partition"
)

// chain is what is true of one slice: the Configs that were agreed, as far as honest peers
// took part. It is honest as long as a majority of the keepers of its last Config is.
type chain struct {
	last  keeping.Config
	known map[string]bool            // names of all of them
	votes map[string]map[string]bool // by name of the successor: honest peers that accepted it
	rows  map[string]bool            // rows that honest keepers had at the last count, while honest
	doubt map[string]int             // samples in a row that a peer believed what is not true
}

func short(id string) string { return id[max(0, len(id)-6):] }

func nameOf(c keeping.Config) string {
	out := fmt.Sprintf("%d/%s/%d/%s:", c.Epoch, short(c.Fork), c.Gen, short(c.Owner))
	for _, k := range c.Keepers {
		out += " " + short(k)
	}
	return out
}

// judge sees what honest peers say to each other and holds what they believe against it.
type judge struct {
	honest map[string]*nodetest.SimPeer
	logf   func(format string, args ...any)
	logged int

	mu     sync.Mutex
	chains map[partition.Slice]*chain

	samples, honestSlices, served, unserved, hostileOwned int
	lost, wrong, misbelieved                              int
	fewest                                                int
}

func newJudge(honest []*nodetest.SimPeer, log func(string, ...any)) *judge {
	j := &judge{honest: map[string]*nodetest.SimPeer{}, logf: log, chains: map[partition.Slice]*chain{}, fewest: 1 << 30}
	for _, p := range honest {
		j.honest[p.ID] = p
		log("%s, which is honest, is %s", p.Name, short(p.ID))
	}
	n := honest[0].Node()
	for _, s := range n.Slices() { // honest peers alone have agreed on this
		c := n.Agreed(s)
		j.chains[s] = &chain{last: c, known: map[string]bool{nameOf(c): true}, votes: map[string]map[string]bool{}, rows: map[string]bool{}, doubt: map[string]int{}}
	}
	return j
}

// log tells the first few faults.
func (j *judge) log(format string, args ...any) {
	if j.logged++; j.logged <= 12 {
		j.logf("sample %d, %s: "+format, append([]any{j.samples, time.Now().Format(time.TimeOnly)}, args...)...)
	}
}

func (j *judge) isHonest(c keeping.Config) bool {
	n := 0
	for _, k := range c.Keepers {
		if j.honest[k] != nil {
			n++
		}
	}
	return n >= c.Quorum()
}

func configOf(c *wire.Config) keeping.Config {
	out := keeping.Config{Epoch: c.GetEpoch(), Fork: c.GetFork(), Gen: c.GetGen(), Owner: c.GetOwner(), Keepers: c.GetKeepers()}
	for _, s := range c.GetStarts() {
		out.Starts = append(out.Starts, keeping.Start{Gen: s.Gen, Pos: s.Pos})
	}
	return out
}

// sent is told of each request of an honest peer: what it tells others was decided, it
// decided, with the votes of a majority.
func (j *judge) sent(from string, req *wire.Request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if b := req.GetBallots(); b != nil && b.Accept { // it has accepted what it asks others to accept
		for _, p := range b.Proposals {
			j.vote(from, partition.Slice(p.Base.GetSlice()), configOf(p.Base), configOf(p.Next))
		}
	}
	for _, w := range req.GetConfigs().GetDecided() {
		ch := j.chains[partition.Slice(w.Slice)]
		if c := configOf(w); ch != nil && ch.last.Has(from) && c.SameFork(ch.last) && c.Gen == ch.last.Gen+1 {
			j.advance(ch, c)
		}
	}
}

// served is told of each answer of an honest peer.
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

// vote counts an honest peer's acceptance; hostile keepers are taken to accept anything.
func (j *judge) vote(by string, s partition.Slice, base, next keeping.Config) {
	ch := j.chains[s]
	if ch == nil || base.Compare(ch.last) != 0 || !ch.last.Has(by) || !next.SameFork(base) || next.Gen != base.Gen+1 {
		return
	}
	name := nameOf(next)
	if ch.votes[name] == nil {
		ch.votes[name] = map[string]bool{}
	}
	ch.votes[name][by] = true
	n := len(ch.votes[name])
	for _, k := range ch.last.Keepers {
		if j.honest[k] == nil {
			n++
		}
	}
	if n >= ch.last.Quorum() {
		j.advance(ch, next)
	}
}

func (j *judge) advance(ch *chain, c keeping.Config) {
	if j.isHonest(ch.last) != j.isHonest(c) {
		ch.rows = map[string]bool{}
	}
	ch.last, ch.known[nameOf(c)] = c, true
	clear(ch.votes)
}

// patience is how many samples in a row a peer may believe what the judge has not heard
// of yet: the word is on its way.
const patience = 3

// sample compares what honest peers believe and do with what is true.
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
		if !j.isHonest(ch.last) {
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
				j.log("%s: %s believes %s, true is %s", s, p.Name, nameOf(c), nameOf(ch.last))
			}
		}
		for _, id := range acting[s] {
			if id != ch.last.Owner {
				j.wrong++
				j.log("%s: %s acts, true is %s", s, j.honest[id].Name, nameOf(ch.last))
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

// follow takes for true of a slice that hostile peers have the majority of whatever the
// newest is that an honest peer believes. It is honest again once all honest peers
// believe the same and have the majority by it.
func (j *judge) follow(s partition.Slice, ch *chain) {
	newest, same := ch.last, true
	for _, p := range j.honest {
		if c := p.Node().Agreed(s); c.Compare(newest) > 0 {
			newest = c
		}
	}
	for _, p := range j.honest {
		same = same && nameOf(p.Node().Agreed(s)) == nameOf(newest)
	}
	if newest.Compare(ch.last) > 0 && (same || !j.isHonest(newest)) {
		j.advance(ch, newest)
	}
}

// count looks for rows that were at honest keepers of a slice, and are at none any more.
// What the crawl deletes of its own accord is not among those tables.
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
		if !j.isHonest(ch.last) {
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
		"rows lost %d, acted in by who should not %d, believed though not true %d; took %s",
		j.samples, float64(j.honestSlices)/float64(max(1, j.samples)), len(j.chains), j.fewest, share(j.served+j.unserved, j.honestSlices),
		share(j.served, j.served+j.unserved), j.lost, j.wrong, j.misbelieved, real.Round(time.Second))
}
