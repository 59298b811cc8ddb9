package dht

import (
	"sync"

	"github.com/libp2p/go-libp2p/core/peer"
)

// places bound how many calls are served at once: in all, of one peer, and of
// those that are not urgent, which is known only when a call has been read.
type places struct {
	all, peer, bulk int // limits

	mu     sync.Mutex
	served int
	bulky  int
	of     map[peer.ID]int
}

// take is for a call that is about to be read; false when there is no room.
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

func (p *places) leave(from peer.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.served--
	if p.of[from]--; p.of[from] == 0 {
		delete(p.of, from)
	}
}

// takeBulk is for a call that has been read and can wait.
func (p *places) takeBulk() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bulky >= p.bulk {
		return false
	}
	p.bulky++
	return true
}

func (p *places) leaveBulk() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bulky--
}

func (p *places) taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.served
}
