package node

import (
	"context"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht"
)

// Limits of what is kept of members of other zones.
const (
	MaxNeighbours     = 4096             // told apart; the oldest make room
	neighbourLife     = 10 * time.Minute // of one whose descriptor was found
	neighbourDoubt    = 5 * time.Second  // of one whose descriptor was not found
	neighbourSearches = 16               // at once; one more is told to come again
	neighbourWait     = 3 * time.Second  // of a request, for the search
)

// neighbours are the peers of other zones that have asked something here. They are not
// in this peer's View; each is known by the descriptor that it signed and that Kademlia
// keeps. In a swarm of one zone there are none, and nothing is looked for.
type neighbours struct {
	zones  func() bool // whether the swarm has zones
	find   func(ctx context.Context, id string) (dht.Descriptor, error)
	mu     sync.Mutex
	known  map[string]knownNeighbour
	flying map[string]chan struct{}
}

// knownNeighbour is what was found of one.
type knownNeighbour struct {
	good  bool
	until time.Time
}

// has says whether id is a member of another zone. It may look for its descriptor, for a
// bounded time and for few peers at once: strangers cost no more than that.
func (b *neighbours) has(ctx context.Context, id string) bool {
	if !b.zones() {
		return false
	}
	b.mu.Lock()
	if x, ok := b.known[id]; ok && time.Now().Before(x.until) {
		b.mu.Unlock()
		return x.good
	}
	done, flying := b.flying[id]
	if !flying {
		if len(b.flying) >= neighbourSearches {
			b.mu.Unlock()
			return false
		}
		done = make(chan struct{})
		b.flying[id] = done
	}
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, neighbourWait)
	defer cancel()
	if flying {
		select {
		case <-done:
		case <-ctx.Done():
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.known[id].good
	}
	desc, err := b.find(ctx, id)
	now := time.Now()
	x := knownNeighbour{good: err == nil && !desc.Leaving, until: now.Add(neighbourDoubt)}
	if x.good {
		x.until = now.Add(neighbourLife)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keep(id, x, now)
	delete(b.flying, id)
	close(done)
	return x.good
}

// keep remembers one, in place of the one that ends first when there is no room. b.mu is held.
func (b *neighbours) keep(id string, x knownNeighbour, now time.Time) {
	if _, there := b.known[id]; !there && len(b.known) >= MaxNeighbours {
		oldest, at := "", time.Time{}
		for other, y := range b.known {
			if !now.Before(y.until) {
				delete(b.known, other)
			} else if oldest == "" || y.until.Before(at) {
				oldest, at = other, y.until
			}
		}
		if len(b.known) >= MaxNeighbours {
			delete(b.known, oldest)
		}
	}
	b.known[id] = x
}

func newNeighbours(n *Node) *neighbours {
	return &neighbours{
		zones: func() bool { return n.charter.ZoneMax > 0 },
		find:  func(ctx context.Context, id string) (dht.Descriptor, error) { return n.dht.Descriptor(ctx, id) },
		known: map[string]knownNeighbour{}, flying: map[string]chan struct{}{}}
}
