package zonesim

import (
	"container/heap"
	"math/rand/v2"
	"slices"
)

// The parameters of package dht.
const (
	witnesses = 2
	maxAsked  = 6
	walkFinds = 4
	zoneSkew  = 2
)

// answer is the response to one message, on its way.
type answer struct {
	at   int // ms
	from peerNo
}

// answers is a heap of answers, the next one first (heap.Interface).
type answers []answer

func (q answers) Len() int           { return len(q) }
func (q answers) Less(i, j int) bool { return q[i].at < q[j].at }
func (q answers) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *answers) Push(x any)        { *q = append(*q, x.(answer)) }
func (q *answers) Pop() any {
	x := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return x
}

// walk is one walk of a peer to a place.
type walk struct {
	s     *swarm
	rng   *rand.Rand
	place uint64
	depth int
	// milliseconds since the walk began
	now      int
	hops     map[peerNo]int // number of hops to each known peer; 0: from the own table
	heard    []peerNo       // nearest first
	asked    map[peerNo]bool
	done     map[peerNo]bool // responded, or given up
	dead     map[peerNo]bool
	inFlight answers

	// peers near the place; the closest first when the walk has ended
	found []peerNo
	// number of peers that share more than depth bits with the place
	close int
	// messages sent, and the duration in milliseconds
	Messages int
	MS       int
}

const deadMS = 5000 // until a dead peer is given up

// walk runs one walk of the peer from to place, and returns it.
func (s *swarm) walk(rng *rand.Rand, from peerNo, place uint64) *walk {
	w := &walk{s: s, rng: rng, place: place, depth: int(s.depth[from]), hops: map[peerNo]int{from: 0},
		asked: map[peerNo]bool{from: true}, done: map[peerNo]bool{}, dead: map[peerNo]bool{}}
	w.hear(s.nearest(from, place), 0)
	w.run()
	slices.SortStableFunc(w.found,
		func(a, b peerNo) int { return common(s.places[b], place) - common(s.places[a], place) })
	w.MS = w.now
	return w
}

// hear adds the peers that are new. hops is their number of hops.
func (w *walk) hear(ps []peerNo, hops int) {
	for _, p := range ps {
		if _, known := w.hops[p]; known {
			continue
		}
		w.hops[p] = hops
		at, _ := slices.BinarySearchFunc(w.heard, p, func(a, b peerNo) int { return w.s.compare(a, b, w.place) })
		w.heard = slices.Insert(w.heard, at, p)
		if n := common(w.s.places[p], w.place); n >= max(1, w.depth-zoneSkew) {
			w.found = append(w.found, p)
			if n > w.depth {
				w.close++
			}
		}
	}
}

// ask sends a message to p. The response comes after 20 to 200 ms, or the peer is given up after
// deadMS.
func (w *walk) ask(p peerNo) {
	w.asked[p] = true
	w.Messages++
	wait := 20 + w.rng.IntN(181)
	if w.s.dead[p] {
		wait = deadMS
	}
	heap.Push(&w.inFlight, answer{w.now + wait, p})
}

// run asks peers until walkFinds are close, or until Kademlia's own condition holds and its
// follow-up is done.
func (w *walk) run() {
	// Keep alpha messages in flight, to the closest peers that were not asked.
	for w.close < walkFinds && !w.converged() {
		for _, p := range w.heard {
			if len(w.inFlight) >= alpha {
				break
			}
			if !w.asked[p] {
				w.ask(p)
			}
		}
		if len(w.inFlight) == 0 {
			return
		}
		w.take()
	}
	if w.close >= walkFinds {
		return
	}
	for _, p := range w.alive(bucketSize) { // Kademlia's follow-up
		if !w.asked[p] {
			w.ask(p)
		}
	}
	for len(w.inFlight) > 0 && w.close < walkFinds {
		w.take()
	}
}

// take processes the next response.
func (w *walk) take() {
	a := heap.Pop(&w.inFlight).(answer)
	w.now = a.at
	w.done[a.from] = true
	// It was given up, and told nothing.
	if w.s.dead[a.from] {
		w.dead[a.from] = true
		return
	}
	w.hear(w.s.nearest(a.from, w.place), w.hops[a.from]+1)
}

// alive returns the n nearest peers that are not known to be dead.
func (w *walk) alive(n int) []peerNo {
	var out []peerNo
	for _, p := range w.heard {
		if !w.dead[p] {
			if out = append(out, p); len(out) == n {
				break
			}
		}
	}
	return out
}

// converged is Kademlia's own condition for the end of a walk.
func (w *walk) converged() bool {
	for _, p := range w.alive(beta) {
		if !w.done[p] {
			return false
		}
	}
	return true
}
