package nodetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	mocknet "github.com/libp2p/go-libp2p/p2p/net/mock"

	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/dht/wire"
)

// relink sets the links: between living peers of one side, with the higher latency of the two.
func (s *Sim) relink() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var cut [][2]*SimPeer
	for i, a := range s.Peers {
		for _, b := range s.Peers[:i] {
			links := s.net.LinksBetweenPeers(a.id, b.id)
			if !a.alive() || !b.alive() || s.side[a] != s.side[b] {
				for _, l := range links {
					if err := s.net.Unlink(l); err != nil {
						s.t.Error(err)
					}
				}
				cut = append(cut, [2]*SimPeer{a, b})
				continue
			}
			if len(links) == 0 {
				l, err := s.net.LinkPeers(a.id, b.id)
				if err != nil {
					s.t.Error(err)
					continue
				}
				links = append(links, l)
			}
			for _, l := range links {
				l.SetOptions(mocknet.LinkOptions{Latency: max(s.o.Latency, s.lag[a], s.lag[b])})
			}
		}
	}
	s.linkStrangers()
	for _, pair := range cut {
		for i := range pair {
			if n := s.net.Net(pair[i].id); n != nil {
				if err := n.ClosePeer(pair[1-i].id); err != nil {
					s.t.Error(err)
				}
			}
		}
	}
}

func (p *SimPeer) alive() bool {
	l := p.life.Load()
	return l != nil && !l.dead.Load()
}

// Cut divides the swarm: peers of different sides cannot reach each other. A peer that is not
// in side is on side 0.
func (s *Sim) Cut(side map[*SimPeer]int) {
	s.mu.Lock()
	s.side = side
	s.mu.Unlock()
	s.relink()
	time.Sleep(time.Millisecond)
	s.relink() // connections that were being dialled in the meantime
}

// Heal ends a cut.
func (s *Sim) Heal() { s.Cut(map[*SimPeer]int{}) }

// Lag makes all links of p slow in both directions; 0 = like the others.
func (s *Sim) Lag(p *SimPeer, latency time.Duration) {
	s.mu.Lock()
	s.lag[p] = latency
	s.mu.Unlock()
	s.relink()
}

// Pause stops p, as far as a bubble allows. What it sends or receives arrives lag later, and it
// sends no requests to sites. Responses to earlier requests reach it after Resume. Its timers
// and its disk continue, unlike those of a stopped process. Tests of real processes use
// SIGSTOP.
func (s *Sim) Pause(p *SimPeer, lag time.Duration) {
	if l := p.life.Load(); l != nil {
		held := make(chan struct{})
		l.held.Store(&held)
		s.Lag(p, lag)
	}
}

// Resume ends a Pause, and a Lag.
func (s *Sim) Resume(p *SimPeer) {
	s.Lag(p, 0)
	if l := p.life.Load(); l != nil {
		l.resume()
	}
}

// Effect is what happens to one call between two peers.
type Effect int

// The effects. The called peer does not see a Lost call. It serves a Failed call, but the
// calling peer gets no response.
const (
	Pass Effect = iota
	Lost
	Failed
	Twice
	CalleeCrashesBefore
	CalleeCrashesAfter
	CallerCrashesBefore
	CallerCrashesAfter
)

// CallFaults decides what happens to the calls between peers.
type CallFaults struct {
	mu sync.Mutex
	// judge, when set, decides on each call.
	judge func(from, to *SimPeer, req *wire.Request) Effect
	// the shares of calls that are lost, fail after being served, and are served twice
	lost, failed, twice float64
	rand                *rand.Rand
}

// SetRates makes those shares of all calls fail, at random.
func (c *CallFaults) SetRates(lost, failed, twice float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost, c.failed, c.twice = lost, failed, twice
}

// SetJudge makes f decide on every call; with nil the rates decide. Only one goroutine at a
// time calls f.
func (c *CallFaults) SetJudge(f func(from, to *SimPeer, req *wire.Request) Effect) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.judge = f
}

func (c *CallFaults) effect(from, to *SimPeer, req *wire.Request) Effect {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.judge != nil {
		return c.judge(from, to, req)
	}
	switch x := c.rand.Float64(); {
	case x < c.lost:
		return Lost
	case x < c.lost+c.failed:
		return Failed
	case x < c.lost+c.failed+c.twice:
		return Twice
	}
	return Pass
}

var errLost = errors.New("sim: the answer is lost")

// around is node.Options.Around.
func (l *life) around(ctx context.Context, to string, req *wire.Request, next dht.Caller) (*wire.Response, error) {
	s := l.p.s
	callee := s.peer(to)
	if l.dead.Load() || callee == nil {
		return nil, fmt.Errorf("%w: %w", dht.ErrNoPeer, errDead)
	}
	e := s.Calls.effect(l.p, callee, req)
	switch e {
	case Lost:
		return nil, fmt.Errorf("%w: sim: lost", dht.ErrNoPeer)
	case CalleeCrashesBefore:
		s.Crash(callee)
		return nil, errLost
	case CallerCrashesBefore:
		s.Crash(l.p)
		return nil, errDead
	}
	resp, err := next(ctx, req)
	switch e {
	case Failed:
		return nil, errLost
	case Twice:
		resp, err = next(ctx, req)
	case CalleeCrashesAfter:
		s.Crash(callee)
		return nil, errLost
	case CallerCrashesAfter:
		s.Crash(l.p)
		return nil, errDead
	}
	return resp, err
}

func (s *Sim) peer(id string) *SimPeer {
	s.adding.RLock()
	defer s.adding.RUnlock()
	for _, p := range s.Peers {
		if p.ID == id {
			return p
		}
	}
	return nil
}
