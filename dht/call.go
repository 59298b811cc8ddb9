package dht

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	kad "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/echo-node/echo-node/dht/guard"
	"github.com/echo-node/echo-node/dht/life"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/dht/zone"
	"github.com/echo-node/echo-node/partition"
)

const (
	rpcSuffix = "/rpc/1"
	// What members agree on (Options.Urgent) has a protocol, and places, of its
	// own: see lanes. Who does not know it is asked on the other.
	prioritySuffix = "/urgent/1"
	rpcService     = "echo-node.rpc"
	busyRetry      = 500 * time.Millisecond // what a busy peer asks others to wait
)

// gates limit the calls to each peer.
type gates struct {
	limit int
	mu    sync.Mutex
	open  map[peer.ID]*gate
}

type gate struct {
	slots chan struct{}
	users int
}

// enter waits for a slot; leave gives it back.
func (g *gates) enter(ctx context.Context, p peer.ID) (leave func(), err error) {
	g.mu.Lock()
	if g.open == nil {
		g.open = map[peer.ID]*gate{}
	}
	one := g.open[p]
	if one == nil {
		one = &gate{slots: make(chan struct{}, g.limit)}
		g.open[p] = one
	}
	one.users++
	g.mu.Unlock()
	done := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(g.open, p)
		}
	}
	select {
	case one.slots <- struct{}{}:
		return func() { <-one.slots; done() }, nil
	case <-ctx.Done():
		done()
		return nil, ctx.Err()
	}
}

// callCounts are counters of calls: see Stats.
type callCounts struct {
	callsOut, callsFailed, callsIn, busy, malformed, replayed, cut, bytesIn, bytesOut atomic.Uint64
}

// calls are the requests that this peer sends and answers.
type calls struct {
	opts   Options
	log    *slog.Logger
	host   host.Host // as the protocols of the swarm see it
	self   peer.ID
	prefix protocol.ID
	kad    *kad.IpfsDHT
	guard  *guard.Guard
	zones  *zone.Zones
	life   *life.Life
	count  callCounts
	gates  gates
	places places
	lanes  lanes

	priorityGates gates

	mu      sync.Mutex
	handler Handler
}

// open begins to answer the calls of other peers.
func (c *calls) open() {
	c.host.SetStreamHandler(c.prefix+rpcSuffix, c.serve)
	c.host.SetStreamHandler(c.prefix+prioritySuffix, c.serve)
}

// close answers no more.
func (c *calls) close() {
	c.host.RemoveStreamHandler(c.prefix + rpcSuffix)
	c.host.RemoveStreamHandler(c.prefix + prioritySuffix)
}

func (c *calls) handle(h Handler) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handler = h
}

// Call is DHT.Call.
func (c *calls) Call(ctx context.Context, peerID string, req *wire.Request) (*wire.Response, error) {
	if !c.life.Begin() {
		return nil, fmt.Errorf("call: %w", life.ErrClosed)
	}
	defer c.life.End()
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.opts.CallTimeout)
		defer cancel()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.life.Context(), func() { cancel(life.ErrClosed) })()
	// The caller's request is not written to, and its body, which may be large,
	// not copied.
	req = &wire.Request{Version: cmp.Or(req.GetVersion(), partition.WireVersion), View: req.GetView(),
		Id: rand.Uint64(), Body: req.GetBody()}
	p, err := decodePeer(peerID)
	if err != nil {
		return nil, fmt.Errorf("call: %w", err)
	}
	c.count.callsOut.Add(1)
	next := func(ctx context.Context, req *wire.Request) (*wire.Response, error) { return c.call(ctx, p, req) }
	var res *wire.Response
	if c.opts.Around == nil || p == c.self {
		res, err = next(ctx, req)
	} else {
		res, err = c.opts.Around(ctx, peerID, req, next)
	}
	if err != nil {
		c.count.callsFailed.Add(1)
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err) // the stream was reset because the time was up
		}
		return nil, fmt.Errorf("call %s: %w", p, err)
	}
	return res, nil
}

func (c *calls) call(ctx context.Context, p peer.ID, req *wire.Request) (*wire.Response, error) {
	if p == c.self {
		return c.answer(ctx, p, req), nil
	}
	gates, ids := &c.gates, []protocol.ID{c.prefix + rpcSuffix}
	if c.opts.Priority != nil && c.opts.Priority(req) {
		gates, ids = &c.priorityGates, []protocol.ID{c.prefix + prioritySuffix, c.prefix + rpcSuffix}
	}
	leave, err := gates.enter(ctx, p)
	if err != nil {
		return nil, err
	}
	defer leave()
	s, err := c.openStream(ctx, p, ids...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoPeer, err)
	}
	// The one way to end a blocked Read or Write that every transport has.
	defer context.AfterFunc(ctx, func() { _ = s.Reset() })()
	res, err := c.exchange(s, req)
	if err != nil {
		_ = s.Reset()
		c.guard.Suspect(p)
		return nil, err
	}
	_ = s.Close() // both directions are done
	return res, nil
}

// openStream connects if need be; the addresses are those that the membership
// or Kademlia knows.
func (c *calls) openStream(ctx context.Context, p peer.ID, ids ...protocol.ID) (network.Stream, error) {
	if c.host.Network().Connectedness(p) != network.Connected && len(c.host.Peerstore().Addrs(p)) == 0 {
		info, err := c.kad.FindPeer(ctx, p)
		if err != nil {
			return nil, err
		}
		if err := c.host.Connect(ctx, info); err != nil {
			return nil, err
		}
	}
	return c.host.NewStream(ctx, p, ids...)
}

func (c *calls) exchange(s network.Stream, req *wire.Request) (*wire.Response, error) {
	n, err := wire.WriteRequest(s, req)
	c.count.bytesOut.Add(uint64(n))
	if err != nil {
		return nil, err
	}
	// A peer that has the whole request may stop reading before our end of it
	// arrives; QUIC then says that the stream is cancelled. The answer decides.
	_ = s.CloseWrite()
	res, n, err := wire.ReadResponse(s)
	c.count.bytesIn.Add(uint64(n))
	if err != nil {
		return nil, fmt.Errorf("no answer: %w", err)
	}
	if res.GetRefusal() == nil && res.GetId() != req.GetId() {
		c.count.replayed.Add(1)
		return nil, ErrReplayed
	}
	return res, nil
}

// serve answers one call of another peer.
func (c *calls) serve(s network.Stream) {
	if !c.life.Begin() {
		_ = s.Reset()
		return
	}
	defer c.life.End()
	defer context.AfterFunc(c.life.Context(), func() { _ = s.Reset() })()
	c.count.callsIn.Add(1)
	if err := s.Scope().SetService(rpcService); err != nil {
		_ = s.Reset()
		return
	}
	l := c.laneOf(s)
	reading := l.reading.Take(s.Conn().RemotePeer(), s.Conn().RemoteMultiaddr())
	if reading == nil && l == &c.lanes.outside {
		c.count.busy.Add(1)
		_ = s.Reset() // before anything is read or written: it may be one of very many
		return
	}
	res := refusal(wire.Refusal_CODE_BUSY, "too many calls at once")
	if reading == nil {
		c.count.busy.Add(1)
	} else {
		defer reading.Leave()
		res = c.receive(s, l, reading)
	}
	if res == nil {
		_ = s.Reset()
		return
	}
	// A caller that reads too slowly is cut off.
	late := time.AfterFunc(c.opts.ReadTimeout, func() { _ = s.Reset() })
	defer late.Stop()
	n, err := wire.WriteResponse(s, res)
	c.count.bytesOut.Add(uint64(n))
	if err != nil {
		c.log.Debug("answer not sent", "peer", s.Conn().RemotePeer().String(), "err", err)
		_ = s.Reset()
		return
	}
	_ = s.Close()
}

// receive reads the request and has it answered; nil when there is nobody to
// answer to. A member's request leaves its place for reading once it is read.
func (c *calls) receive(s network.Stream, l *lane, reading *guard.Place) *wire.Response {
	from := s.Conn().RemotePeer()
	// A caller that sends too slowly is cut off.
	late := time.AfterFunc(l.within, func() { _ = s.Reset() })
	req, n, err := wire.ReadRequest(s)
	late.Stop()
	c.count.bytesIn.Add(uint64(n))
	switch {
	case errors.Is(err, wire.ErrNoBody), errors.Is(err, wire.ErrVersion):
		c.faulty(from)
		return refusal(wire.Refusal_CODE_UNSUPPORTED, err.Error())
	case errors.Is(err, wire.ErrMalformed), errors.Is(err, wire.ErrTooLarge), errors.Is(err, wire.ErrFrame):
		c.faulty(from)
		return refusal(wire.Refusal_CODE_MALFORMED, err.Error())
	case err != nil:
		c.count.cut.Add(1)
		return nil
	}
	urgent := c.opts.Priority != nil && c.opts.Priority(req)
	switch l {
	case &c.lanes.priority:
		if !urgent {
			c.faulty(from)
			return refusal(wire.Refusal_CODE_MALFORMED, "not a request for this protocol")
		}
		serving := c.lanes.serving.Take(from, s.Conn().RemoteMultiaddr())
		if serving == nil {
			c.count.busy.Add(1)
			return refusal(wire.Refusal_CODE_BUSY, "too many calls at once")
		}
		defer serving.Leave()
		reading.Leave()
	case &c.lanes.inside:
		if !c.places.take(from) {
			c.count.busy.Add(1)
			return refusal(wire.Refusal_CODE_BUSY, "too many calls at once")
		}
		defer c.places.leave(from)
		reading.Leave()
	}
	if !urgent {
		if !c.places.takeBulk() {
			c.count.busy.Add(1)
			return refusal(wire.Refusal_CODE_BUSY, "too many calls at once")
		}
		defer c.places.leaveBulk()
	}
	ctx, cancel := context.WithTimeout(c.life.Context(), c.opts.ServeTimeout)
	defer cancel()
	return c.answer(ctx, from, req)
}

// faulty takes note of a request that is no good.
func (c *calls) faulty(from peer.ID) {
	c.count.malformed.Add(1)
	if c.opts.Faulty != nil {
		c.opts.Faulty(from.String())
	}
}

// answer has the Handler answer and makes its answer valid.
func (c *calls) answer(ctx context.Context, from peer.ID, req *wire.Request) *wire.Response {
	c.mu.Lock()
	h := c.handler
	c.mu.Unlock()
	if h == nil {
		return refusal(wire.Refusal_CODE_BUSY, "not ready")
	}
	res := h(ctx, from.String(), req)
	if res == nil {
		return refusal(wire.Refusal_CODE_UNSUPPORTED, "no handler")
	}
	if res.Version == 0 {
		res.Version = partition.WireVersion
	}
	c.zones.Sign(res.GetWhoOwns())
	res.Id = req.GetId()
	if err := res.Validate(); err != nil {
		c.log.Error("own answer is not valid", "err", err)
		return refusal(wire.Refusal_CODE_INTERNAL, "the answer is not valid: "+err.Error())
	}
	return res
}

func refusal(code wire.Refusal_Code, reason string) *wire.Response {
	r := &wire.Refusal{Code: code, Reason: reason[:min(len(reason), wire.MaxText)]}
	if code == wire.Refusal_CODE_BUSY {
		r.RetryAfterMs, r.Pause = uint64(busyRetry.Milliseconds()), true
	}
	return &wire.Response{Version: partition.WireVersion, Refusal: r}
}
