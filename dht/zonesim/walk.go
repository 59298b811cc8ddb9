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

// answer is a message's response that is on its way.
type answer struct {
	at   int // ms
	from peerNo
}

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
	s        *swarm
	rng      *rand.Rand
	place    uint64
	depth    int
	now      int
	hops     map[peerNo]int // number of hops to each known peer; 0: from the own table
	heard    []peerNo       // nearest first
	asked    map[peerNo]bool
	done     map[peerNo]bool // responded, or given up
	dead     map[peerNo]bool
	inFlight answers

	found    []peerNo
	close    int
	Messages int
	MS       int
}

const deadMS = 5000 // until a dead peer is given up

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

func (w *walk) ask(p peerNo) {
	w.asked[p] = true
	w.Messages++
	wait := 20 + w.rng.IntN(181)
	if w.s.dead[p] {
		wait = deadMS
	}
	heap.Push(&w.inFlight, answer{w.now + wait, p})
}

func (w *walk) run() {
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
