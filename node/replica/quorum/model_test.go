package quorum

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
)

// The model has a few machines. Their clocks run at different speeds, and their stores keep
// only what was synced. The network loses, delays, duplicates and reorders messages. The node's
// procedures are cut into steps so that everything interleaves. The invariants are checked
// after every step (model_check_test.go).
//
// A step is atomic, as the node must make it. It covers a Machine's response, its Dirty rows,
// and the change of the log that belongs to them.

// world is one run of the model.
type world struct {
	rng    *rand.Rand
	now    time.Duration // real time, which no peer knows
	queue  events
	seq    int
	nodes  []*node
	void   *node // the sender of liars' messages for deceived peers; it never responds
	slices []partition.Slice
	cut    [8]uint8 // bit j of cut[i]: i receives nothing from j
	cuts   int
	faulty bool
	adopt  bool          // peers adopt slices, rightly or wrongly
	liars  bool          // liars send messages, see model_liars_test.go
	quiet  time.Duration // nothing is written from then on
	rule   naiveRule
	lossy  int           // of 100 messages, the number lost while faulty
	slow   time.Duration // delay of a slow message
	writes int           // of 100 ticks of an owner
	idle   int           // of 100 ticks, those that replicate nothing
	synced int           // of 100 ticks
	calm   time.Duration // longest time between two mishaps
	dead   int           // the peer that stays down after the faults end; -1: none
	checks checks
	fault  string // the invariant that broke
	trace  []string
	traced bool
	stats  map[string]int
}

// naiveRule is a rule that nodes can be made to break. The model must then find a broken
// invariant.
type naiveRule int

const (
	keepRules    naiveRule = iota
	shipVolatile           // replicates and counts what is not durable
	dropSurplus            // drops a surplus copy without asking its owner
)

type event struct {
	at  time.Duration
	seq int
	run func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func (w *world) after(d time.Duration, run func()) {
	w.seq++
	heap.Push(&w.queue, event{w.now + d, w.seq, run})
}

func (w *world) chance(percent int) bool { return w.rng.IntN(100) < percent }

func (w *world) between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.rng.Int64N(int64(b-a)))
}

func (w *world) log(format string, args ...any) {
	if w.traced {
		w.trace = append(w.trace, fmt.Sprintf("%8.3f ", w.now.Seconds())+fmt.Sprintf(format, args...))
	}
}

// run processes events until the given time or the first broken invariant.
func (w *world) run(until time.Duration) {
	for w.fault == "" && len(w.queue) > 0 && w.queue[0].at <= until {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		e.run()
		w.check()
	}
	w.now = until
}

// delay returns the delay of one message. It returns false when the message is lost.
func (w *world) delay() (time.Duration, bool) {
	if !w.faulty {
		return w.between(time.Millisecond, 20*time.Millisecond), true
	}
	switch {
	case w.chance(w.lossy):
		return 0, false
	case w.chance(10):
		return w.between(time.Millisecond, w.slow), true
	}
	return w.between(time.Millisecond, 100*time.Millisecond), true
}

// send carries one message from a to b, perhaps more than once. If inc is not 0, only that
// incarnation of b receives it: a response is lost when the asking node restarts.
func (w *world) send(a, b *node, inc int, name string, run func()) {
	for {
		d, ok := w.delay()
		if !ok {
			w.log("%s->%s %s lost", a.id, b.id, name)
		} else {
			w.after(d, func() {
				if w.cut[b.i]&(1<<a.i) != 0 {
					return
				}
				b.step(inc, fmt.Sprint(a.id, "->", b.id, " ", name), func() {
					b.met[a.id] = b.clock()
					run()
				})
			})
		}
		if !w.faulty || !w.chance(5) {
			return
		}
	}
}

// call sends a request to b and carries the response back to a.
func call[A any](a, b *node, name string, serve func() A, done func(A)) {
	inc := a.inc
	a.w.send(a, b, 0, name, func() {
		answer := serve()
		a.w.send(b, a, inc, name+"'s answer", func() { done(answer) })
	})
}

// newWorld returns a world that seed determines.
func newWorld(seed uint64, adopt bool, rule naiveRule) *world {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := &world{rng: rng, faulty: true, adopt: adopt, rule: rule, stats: map[string]int{},
		lossy: rng.IntN(30), slow: time.Duration(1+rng.IntN(8)) * time.Second,
		writes: 3 + rng.IntN(30), idle: rng.IntN(90), synced: 10 + rng.IntN(80),
		calm: time.Duration(2+rng.IntN(20)) * time.Second, dead: -1}
	w.checks.init()
	charter := partition.DefaultCharter("model", "a")
	charter.SliceBits = 2
	w.slices = charter.Slices()[:1+rng.IntN(3)]
	for i := range 3 + rng.IntN(5) {
		n := &node{w: w, i: i, id: string(rune('a' + i)), rate: time.Duration(rng.IntN(101) - 50),
			offset: time.Duration(rng.Int64N(int64(1000 * time.Hour))), rows: map[partition.Slice][]byte{}}
		n.disk, n.mem = make([]copyState, len(w.slices)), make([]copyState, len(w.slices))
		w.nodes = append(w.nodes, n)
	}
	for _, n := range w.nodes {
		n.start()
		w.after(w.between(0, time.Second), n.ticks)
	}
	w.after(w.between(0, 3*time.Second), w.mishap)
	w.void = &node{w: w, i: 7, id: "void", disk: make([]copyState, len(w.slices)),
		mem: make([]copyState, len(w.slices))}
	w.void.start()
	w.void.crash()
	return w
}

func (w *world) byID(id string) *node {
	if isLiar(id) {
		return w.void
	}
	return w.nodes[id[0]-'a']
}

// mishap causes a random fault for a while.
func (w *world) mishap() {
	if !w.faulty {
		return
	}
	w.after(w.between(0, w.calm), w.mishap)
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	switch w.rng.IntN(9) {
	case 0, 1:
		if n.up {
			w.log("%s crashes", n.id)
			n.crash()
			w.after(w.between(10*time.Millisecond, 15*time.Second), func() {
				if !n.up && n.i != w.dead {
					n.start()
				}
			})
		}
	case 2:
		if !n.paused {
			w.log("%s is paused", n.id)
			n.paused = true
			longest := 12 * time.Second
			if w.chance(20) {
				longest = 50 * time.Second
			}
			w.after(w.between(10*time.Millisecond, longest), n.resume)
		}
	case 3, 4:
		w.log("a cut")
		w.partition(w.rng.IntN(256), 20*time.Second)
	case 5, 6:
		w.cutOwner(n)
	case 7: // one direction of one link
		w.cut[n.i] |= 1 << w.rng.IntN(len(w.nodes))
	}
}

// partition cuts the network into two sides for a while.
func (w *world) partition(side int, longest time.Duration) {
	for i := range w.cut {
		w.cut[i] = uint8(side)
		if side&(1<<i) != 0 {
			w.cut[i] = ^uint8(side)
		}
	}
	w.cuts++
	nth := w.cuts
	w.after(w.between(time.Second, longest), func() {
		if w.cuts == nth {
			w.cut = [8]uint8{}
		}
	})
}

// cutOwner cuts off an owner that n knows. The owner writes on as long as it may.
func (w *world) cutOwner(n *node) {
	s := w.slices[w.rng.IntN(len(w.slices))]
	n = w.byID(n.m.ReplicaSet(s).Owner)
	w.log("%s is cut off", n.id)
	w.partition(1<<n.i, 15*time.Second)
	n.step(0, n.id+" writes on", func() {
		for n.m.Acts(s, n.clock()) && w.chance(70) {
			w.checks.total++
			n.append(s, entry(w.checks.total))
			n.sync()
		}
	})
}

// heal ends all faults and everything that the test itself started.
func (w *world) heal() {
	w.log("healed")
	w.faulty, w.cut, w.idle = false, [8]uint8{}, 0
	if !w.adopt && w.chance(30) {
		w.dead = w.rng.IntN(len(w.nodes))
		w.nodes[w.dead].crash()
		w.log("but for %s", w.nodes[w.dead].id)
	}
	for _, n := range w.nodes {
		if n.paused {
			n.resume()
		}
		if !n.up && n.i != w.dead {
			n.start()
		}
	}
}

// live runs a world through its faults and the time after them.
func (w *world) live() {
	faults := w.between(15*time.Second, 60*time.Second)
	w.quiet = faults + 15*time.Second
	w.run(faults)
	if w.fault != "" {
		return
	}
	w.heal()
	// Long enough for the longest wait: a lease, a failed campaign, an abandoned hand-over, and
	// the age of a surplus copy.
	w.run(w.now + 60*time.Second)
	if w.fault == "" {
		w.checkHealed()
	}
}

func runModel(seed uint64, adopt bool, rule naiveRule, traced bool, more ...func(*world)) *world {
	w := newWorld(seed, adopt, rule)
	for _, do := range more {
		do(w)
	}
	w.traced = traced
	w.live()
	return w
}

// runs returns how many worlds a test runs; the variable ECHO_MODEL changes it.
func runs(t *testing.T, n int) (first, count uint64) {
	t.Helper()
	if s := os.Getenv("ECHO_MODEL"); s != "" { // first,count
		a, b, _ := strings.Cut(s, ",")
		f, err := strconv.ParseUint(a, 10, 64)
		c, err2 := strconv.ParseUint(b, 10, 64)
		if err != nil || err2 != nil {
			t.Fatalf("ECHO_MODEL is not first,count: %q", s)
		}
		return f, c
	}
	if testing.Short() || racetest.Enabled { // the run without the race detector covers all of them
		n /= 10
	}
	return 1, uint64(n)
}

func testModel(t *testing.T, adopt bool, n int) {
	first, count := runs(t, n)
	total := map[string]int{}
	for seed := first; seed < first+count; seed++ {
		w := runModel(seed, adopt, keepRules, false)
		for k, v := range w.stats {
			total[k] += v
		}
		if w.fault == "" {
			continue
		}
		w = runModel(seed, adopt, keepRules, true)
		t.Fatalf("seed %d (ECHO_MODEL=%d,1): %s\n%s", seed, seed, w.fault,
			strings.Join(w.trace[max(0, len(w.trace)-400):], "\n"))
	}
	keys := make([]string, 0, len(total))
	for k := range total {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		t.Logf("%s: %d", k, total[k])
	}
	for _, k := range []string{"acked", "taken over", "handed over", "restarted", "cut a log", "snapshots"} {
		if total[k] == 0 && count >= 200 { // a smaller number of worlds may miss some
			t.Errorf("in %d worlds nothing was ever %q: the model tests too little", count, k)
		}
	}
}

// TestModel checks that nothing acknowledged is lost, that no two peers act in one slice, and
// that everything works again once the faults end.
func TestModel(t *testing.T) { testModel(t, false, 400) }

// TestModelAdoption is the same with adoptions, mostly wrong ones. Within a fork all invariants
// hold, and in the end one fork has everything.
func TestModelAdoption(t *testing.T) { testModel(t, true, 200) }

// TestModelFindsBrokenRules checks that each rule for nodes is needed, and that the model
// notices when it is broken.
func TestModelFindsBrokenRules(t *testing.T) {
	for rule, name := range map[naiveRule]string{
		shipVolatile: "only what is durable is replicated",
		dropSurplus:  "a surplus copy is dropped only with its owner's consent",
	} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed < 3000; seed++ {
				if w := runModel(seed, false, rule, false); w.fault != "" {
					t.Logf("seed %d: %s", seed, w.fault)
					return
				}
			}
			t.Error("nobody noticed")
		})
	}
}
