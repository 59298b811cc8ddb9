package guard

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

// The addresses that a member announces are claims (see dials). Members vouch for each other. A
// peer that wants to dial a member that it never met asks a few members to which it is connected.
// It believes addresses that most of them confirm. The member that is asked reports only what it
// saw itself. These are addresses that it reached, and addresses with the IP address from which
// that member came.
//
//	question   the peer id
//	answer     the number of addresses, then each of them
//
// Numbers are unsigned varints. A peer id or an address has its length in bytes before it.
const (
	// VouchSuffix is the part of the protocol's name after the swarm's prefix.
	VouchSuffix  = "/vouch/1"
	vouchTimeout = 2 * time.Second  // for one question
	vouchAsked   = 3                // members asked; most of these must agree
	vouchPause   = 2 * time.Second  // before a question about the same member is repeated; doubles each time
	vouchPauses  = 2 * time.Minute  // the longest such pause
	meetParallel = 8                // members met at once
	meetMost     = 64               // with so many connections, a peer meets no more members
	meetTimeout  = 5 * time.Second  // for one meeting
	meetPatience = 2 * time.Second  // older members wait this long for a new one to connect
	meetAgain    = time.Minute      // before a member that could not be met is tried again
	meetNew      = 10 * time.Second // how long a peer is new in its swarm
)

// asking is the state of the questions about one member.
type asking struct {
	next  time.Time     // no question before this time
	pause time.Duration // after the next question
	done  chan struct{} // closed at the end of a question in progress; nil = none
}

// inquiries has the state of the questions to witnesses. Only members that could not be dialled
// have an entry. forgetInquiries removes the entry of a peer that is no longer a member.
type inquiries struct {
	mu sync.Mutex
	of map[peer.ID]*asking
}

// askWitnesses asks members for the addresses of p, and reports whether p may be dialled now. If a
// question about p is in progress, it waits for that one. During the pause after a question it asks
// nobody.
func (g *Guard) askWitnesses(ctx context.Context, p peer.ID) bool {
	q := &g.inquiries
	q.mu.Lock()
	one := q.of[p]
	if one == nil {
		if q.of == nil {
			q.of = map[peer.ID]*asking{}
		}
		one = &asking{pause: vouchPause}
		q.of[p] = one
	}
	// Another call asks about p already: wait for its result.
	if done := one.done; done != nil {
		q.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
		}
		return g.gate.dialable(p, g.base.Peerstore().Addrs(p))
	}
	if time.Now().Before(one.next) {
		q.mu.Unlock()
		return false
	}
	one.done = make(chan struct{})
	q.mu.Unlock()

	good, asked := g.collect(ctx, p)
	g.gate.each([]peer.AddrInfo{{ID: p, Addrs: good}}, vouched)
	g.base.Peerstore().AddAddrs(p, good, peerstore.TempAddrTTL)

	q.mu.Lock()
	defer q.mu.Unlock()
	// Without a connected member nobody was asked, so there is no pause.
	if asked > 0 {
		one.next = time.Now().Add(one.pause)
		one.pause = min(2*one.pause, vouchPauses)
	}
	close(one.done)
	one.done = nil
	return len(good) > 0 && g.gate.dialable(p, g.base.Peerstore().Addrs(p))
}

// forgetInquiries removes the entries of peers that are no longer members.
func (g *Guard) forgetInquiries(v partition.View) {
	g.inquiries.mu.Lock()
	defer g.inquiries.mu.Unlock()
	for p, one := range g.inquiries.of {
		if _, live := v.Find(p.String()); !live && one.done == nil {
			delete(g.inquiries.of, p)
		}
	}
}

// collect asks up to vouchAsked members, and returns the addresses that most of them confirm, and
// how many it asked. A member that does not answer counts as one that confirms none.
func (g *Guard) collect(ctx context.Context, p peer.ID) (good []ma.Multiaddr, asked int) {
	var witnesses []peer.ID
	for _, w := range g.base.Network().Peers() {
		// Only members are witnesses, and p is no witness of its own addresses.
		if w != p && w != g.self && g.IsMember(w) {
			witnesses = append(witnesses, w)
		}
	}
	rand.Shuffle(len(witnesses), func(i, j int) { witnesses[i], witnesses[j] = witnesses[j], witnesses[i] })
	// They are drawn at random, so that a liar cannot choose to be asked.
	witnesses = witnesses[:min(len(witnesses), vouchAsked)]
	answers := make(chan []ma.Multiaddr, len(witnesses))
	for _, w := range witnesses {
		go func() {
			addrs, err := g.AskWitness(ctx, w, p)
			if err != nil {
				g.opts.Logger.Debug("who knows a member", "member", p.String(), "asked", w.String(), "err", err)
			}
			answers <- addrs
		}()
	}
	votes := map[string]int{}
	for range witnesses {
		for _, a := range ma.Unique(<-answers) {
			// An address counts when more than half of the witnesses confirm it. Each counts once,
			// see ma.Unique.
			if votes[string(a.Bytes())]++; votes[string(a.Bytes())] == len(witnesses)/2+1 {
				good = append(good, a)
			}
		}
	}
	return good, len(witnesses)
}

// AskWitness asks the member w for the addresses at which it met p. It does not dial w. It takes at
// most vouchTimeout.
func (g *Guard) AskWitness(ctx context.Context, w, p peer.ID) ([]ma.Multiaddr, error) {
	ctx, cancel := context.WithTimeout(network.WithNoDial(ctx, "witness"), vouchTimeout)
	defer cancel()
	s, err := g.top().NewStream(ctx, w, g.opts.Prefix+VouchSuffix)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Reset() }() // nothing more is expected
	defer context.AfterFunc(ctx, func() { _ = s.Reset() })()
	if _, err := s.Write(appendText(nil, []byte(p))); err != nil {
		return nil, err
	}
	_ = s.CloseWrite() // an error does not matter, see calls.exchange in package dht
	r := bufio.NewReader(io.LimitReader(s, wire.MaxAddrs*(wire.MaxAddr+2)+2))
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, err
	}
	if n > wire.MaxAddrs {
		return nil, fmt.Errorf("%d addresses: %w", n, wire.ErrTooLarge)
	}
	var addrs []ma.Multiaddr
	for range n {
		text, err := readText(r, wire.MaxAddr)
		if err != nil {
			return nil, err
		}
		a, err := ma.NewMultiaddrBytes(text)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", wire.ErrMalformed, err)
		}
		addrs = append(addrs, a)
	}
	return addrs, nil
}

// serveVouch answers the question of a member. The stream of an outsider is reset.
func (g *Guard) serveVouch(s network.Stream) {
	if !g.opts.Life.Begin() {
		_ = s.Reset()
		return
	}
	defer g.opts.Life.End()
	late := time.AfterFunc(vouchTimeout, func() { _ = s.Reset() })
	defer late.Stop()
	defer context.AfterFunc(g.opts.Life.Context(), func() { _ = s.Reset() })()
	if err := g.answerVouch(s); err != nil {
		g.opts.Logger.Debug("no answer about addresses", "peer", s.Conn().RemotePeer().String(), "err", err)
		_ = s.Reset()
		return
	}
	_ = s.Close()
}

// answerVouch reads one question and writes the answer.
func (g *Guard) answerVouch(s network.Stream) error {
	// An outsider must not learn where members are.
	if !g.IsMember(s.Conn().RemotePeer()) {
		g.Count.NoPlace.Add("vouch-outsider")
		return errors.New("not a member")
	}
	text, err := readText(bufio.NewReader(s), wire.MaxPeerID)
	if err != nil {
		return err
	}
	p, err := peer.IDFromBytes(text)
	if err != nil {
		return fmt.Errorf("%w: %w", wire.ErrMalformed, err)
	}
	var known []ma.Multiaddr
	if g.gate != nil {
		known = g.gate.holding(p, g.base.Peerstore().Addrs(p))
	}
	known = slices.DeleteFunc(known, func(a ma.Multiaddr) bool { return len(a.Bytes()) > wire.MaxAddr })
	known = known[:min(len(known), wire.MaxAddrs)]
	out := binary.AppendUvarint(nil, uint64(len(known)))
	for _, a := range known {
		out = appendText(out, a.Bytes())
	}
	_, err = s.Write(out)
	return err
}

// appendText appends the length of text and text.
func appendText(to, text []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

// readText reads what appendText wrote, of at most longest bytes.
func readText(r *bufio.Reader, longest uint64) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, err
	}
	if n > longest {
		return nil, fmt.Errorf("text of %d bytes: %w", n, wire.ErrTooLarge)
	}
	text := make([]byte, n)
	_, err = io.ReadFull(r, text)
	return text, err
}

// Run connects a peer that is new in its swarm with the members. They know it only by its claims,
// and believe these once it has connected to them. It also learns from members that it met about
// the others. Run ends with ctx.
func (g *Guard) Run(ctx context.Context) {
	if g.gate == nil {
		return
	}
	var since time.Time // since when other members are in the swarm; zero = alone
	// when this peer tried each member last, and when each came
	tried, came := map[peer.ID]time.Time{}, map[peer.ID]time.Time{}
	room := make(chan struct{}, meetParallel)
	var wg sync.WaitGroup
	defer wg.Wait()
	for ctx.Err() == nil {
		members := g.view().Members()
		now := time.Now()
		switch {
		// since is the time when this peer last stopped being alone.
		case len(members) < 2:
			since = time.Time{}
		case since.IsZero():
			since = now
		}
		// This host may have changed its network since the last round.
		g.gate.settled(g.interfaceAddrs())
		for p, at := range tried {
			if now.Sub(at) > meetAgain || !g.IsMember(p) {
				delete(tried, p)
			}
		}
		for p := range came {
			if !g.IsMember(p) {
				delete(came, p)
			}
		}
		wait := meetAgain / 2
		for _, m := range members {
			p, err := peer.Decode(m.ID)
			if err != nil || p == g.self || !tried[p].IsZero() ||
				g.base.Network().Connectedness(p) == network.Connected {
				continue
			}
			// This peer knows enough members that can vouch.
			if len(g.base.Network().Peers()) >= meetMost {
				break
			}
			if came[p].IsZero() {
				came[p] = now
			}
			// This peer is not new, but p is: p will probably connect by itself.
			if now.Sub(since) > meetNew && now.Sub(came[p]) < meetPatience {
				wait = min(wait, meetPatience)
				continue
			}
			tried[p] = now
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				return
			}
			wg.Go(func() { g.meet(ctx, p); <-room })
		}
		timer := time.NewTimer(wait)
		select {
		case <-g.meets:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// meet connects to p.
func (g *Guard) meet(ctx context.Context, p peer.ID) {
	ctx, cancel := context.WithTimeout(ctx, meetTimeout)
	defer cancel()
	if err := g.top().Connect(ctx, peer.AddrInfo{ID: p}); err != nil {
		g.opts.Logger.Debug("a member is not met", "peer", p.String(), "err", err)
	}
}

// interfaceAddrs returns the addresses at which this host listens, on all its interfaces.
func (g *Guard) interfaceAddrs() []ma.Multiaddr {
	addrs, err := g.base.Network().InterfaceListenAddresses()
	if err != nil {
		g.opts.Logger.Debug("addresses of this host", "err", err)
	}
	return addrs
}
