package quota

import (
	"context"
	"sync"
	"time"
)

// Limits of what is stored about members of other zones.
const (
	MaxNeighbours     = 4096             // peers that are told apart; the oldest make room
	neighbourLife     = 10 * time.Minute // lifetime if the descriptor was found
	neighbourDoubt    = 5 * time.Second  // lifetime if the descriptor was not found
	neighbourSearches = 16               // concurrent searches; further ones are told to retry
	neighbourWait     = 3 * time.Second  // how long a request waits for the search
)

// neighbours holds the peers of other zones that sent requests here. They are not in this peer's
// View. Each is known by the descriptor that it signed and that Kademlia stores. In a swarm of one
// zone there are none, and no search is made.
type neighbours struct {
	swarm  Swarm
	mu     sync.Mutex
	known  map[string]knownNeighbour
	flying map[string]chan struct{}
}

// knownNeighbour is the result of one search.
type knownNeighbour struct {
	good  bool
	until time.Time
}

// has reports whether id is a member of another zone. It may search for the descriptor, for a
// limited time and for few peers at once. So strangers cost no more than that.
func (b *neighbours) has(ctx context.Context, id string) bool {
	if !b.swarm.Zones() {
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
	desc, err := b.swarm.Descriptor(ctx, id)
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

// keep stores one result. If there is no room, it replaces the one that ends first. b.mu is held.
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

func newNeighbours(w Swarm) *neighbours {
	return &neighbours{swarm: w, known: map[string]knownNeighbour{}, flying: map[string]chan struct{}{}}
}
