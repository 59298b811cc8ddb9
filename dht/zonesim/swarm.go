package zonesim

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/echo-node/echo-node/partition"
)

// The parameters of Kademlia, with the defaults of kad-dht.
const (
	bucketSize = 20 // peers in the table for each length of common prefix
	alpha      = 10 // messages at once
	beta       = 3  // a walk ends when so many of the closest peers have responded
)

// peerNo is the index of a peer in the order of the places.
type peerNo int32

// swarm has the peers in order of their places, and the zones into which they split.
type swarm struct {
	seed   uint64
	places []uint64            // of each peer in the key space, in rising order
	depth  []uint8             // of each peer's zone
	dead   []bool              // whether each peer is dead
	zones  int                 // number of zones
	tables map[peerNo][]peerNo // the routing tables that were needed so far
}

// newSwarm draws the places of the peers and which are dead, and splits them into zones.
func newSwarm(o Options) *swarm {
	rng := rand.New(rand.NewPCG(o.Seed, 1))
	s := &swarm{seed: o.Seed, places: make([]uint64, o.Peers), depth: make([]uint8, o.Peers),
		dead: make([]bool, o.Peers), tables: map[peerNo][]peerNo{}}
	for i := range s.places {
		s.places[i] = rng.Uint64()
		s.dead[i] = rng.Float64() < o.Dead
	}
	slices.Sort(s.places)
	s.split(partition.ZoneRule{Max: o.ZoneMax, Replicas: o.Replicas}, 0, len(s.places), 0)
	return s
}

// split halves the zone of the peers from lo to hi as long as the rule says so.
func (s *swarm) split(rule partition.ZoneRule, lo, hi, depth int) {
	mid := lo + sort.Search(hi-lo, func(i int) bool { return s.places[lo+i]<<depth>>63 == 1 })
	if depth < partition.MaxZoneDepth && rule.Splits(mid-lo, hi-mid, 0) {
		s.split(rule, lo, mid, depth+1)
		s.split(rule, mid, hi, depth+1)
		return
	}
	s.zones++
	for i := lo; i < hi; i++ {
		s.depth[i] = uint8(depth)
	}
}

// within returns the range of peers whose places share n bits with place.
func (s *swarm) within(place uint64, n int) (lo, hi int) {
	if n == 0 {
		return 0, len(s.places)
	}
	first := place >> (64 - n) << (64 - n)
	last := first | (1<<(64-n) - 1)
	lo = sort.Search(len(s.places), func(i int) bool { return s.places[i] >= first })
	hi = sort.Search(len(s.places), func(i int) bool { return s.places[i] > last })
	return lo, hi
}

// zone returns the range of peers in the zone that contains place.
func (s *swarm) zone(place uint64) (lo, hi int) {
	at := min(sort.Search(len(s.places), func(i int) bool { return s.places[i] >= place }), len(s.places)-1)
	// A neighbour of place is in its zone, because zones are not empty.
	for _, i := range []int{at, max(at-1, 0)} {
		if common(s.places[i], place) >= int(s.depth[i]) {
			return s.within(place, int(s.depth[i]))
		}
	}
	return s.within(place, 0)
}

// common returns the number of leading bits that a and b share.
func common(a, b uint64) int { return bits.LeadingZeros64(a ^ b) }

// table returns the routing table of p: up to twenty peers for each number of shared bits 0, 1,
// 2, …, drawn by p's own random generator.
func (s *swarm) table(p peerNo) []peerNo {
	if t, ok := s.tables[p]; ok {
		return t
	}
	rng := rand.New(rand.NewPCG(s.seed, uint64(p)+2))
	var t []peerNo
	lo, hi := 0, len(s.places)
	for n := 0; hi-lo > 1; n++ {
		nlo, nhi := s.within(s.places[p], n+1)
		left, others := nlo-lo, (nlo-lo)+(hi-nhi)
		for _, i := range pick(rng, others, bucketSize) {
			if i < left {
				t = append(t, peerNo(lo+i))
			} else {
				t = append(t, peerNo(nhi+i-left))
			}
		}
		lo, hi = nlo, nhi
	}
	s.tables[p] = t
	return t
}

// pick returns up to k different numbers below n.
func pick(rng *rand.Rand, n, k int) []int {
	if n <= k {
		out := make([]int, n)
		for i := range out {
			out[i] = i
		}
		return out
	}
	out := make([]int, 0, k)
	for len(out) < k {
		if i := rng.IntN(n); !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	return out
}

// nearest returns the twenty peers in p's table that are nearest to place.
func (s *swarm) nearest(p peerNo, place uint64) []peerNo {
	t := slices.Clone(s.table(p))
	slices.SortFunc(t, func(a, b peerNo) int { return s.compare(a, b, place) })
	return t[:min(len(t), bucketSize)]
}

// compare orders peers by their XOR distance to place, as in Kademlia.
func (s *swarm) compare(a, b peerNo, place uint64) int {
	switch x, y := s.places[a]^place, s.places[b]^place; {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}
