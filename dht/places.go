package dht

import (
	"sync"

	"github.com/libp2p/go-libp2p/core/peer"
)

// places limits how many calls are served at once: all together, of one peer, and those that are
// not urgent. Whether a call is urgent is known only when it has been read. Safe for concurrent
// use.
type places struct {
	all, peer, bulk int // limits

	mu sync.Mutex
	// now served: all, and those that are not urgent
	served int
	bulky  int
	of     map[peer.ID]int
}

// take takes a place for a call of a member that has been read. It returns false if there is none.
// The caller gives it back with leave.
func (p *places) take(from peer.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.served >= p.all || p.of[from] >= p.peer {
		return false
	}
	if p.of == nil {
		p.of = map[peer.ID]int{}
	}
	p.served++
	p.of[from]++
	return true
}

// leave gives back a place of take.
func (p *places) leave(from peer.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.served--
	if p.of[from]--; p.of[from] == 0 {
		delete(p.of, from)
	}
}

// takeBulk takes a place for a call that is not urgent, in addition to take. The caller gives it
// back with leaveBulk.
func (p *places) takeBulk() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bulky >= p.bulk {
		return false
	}
	p.bulky++
	return true
}

// leaveBulk gives back a place of takeBulk.
func (p *places) leaveBulk() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bulky--
}

// taken returns how many places are taken.
func (p *places) taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.served
}
