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
	// Requests that Options.Priority selects have their own protocol and their own places, see
	// lanes. A peer that does not know this protocol gets them on rpcSuffix.
	prioritySuffix = "/urgent/1"
	rpcService     = "echo-node.rpc"
	busyRetry      = 500 * time.Millisecond // a busy peer asks callers to wait for this time
)

// gates limits the number of calls at once to each peer. Safe for concurrent use. A gate exists
// only while a call uses it.
type gates struct {
	limit int
	mu    sync.Mutex
	open  map[peer.ID]*gate
}

// gate limits the calls to one peer. It has one slot per call, and counts the calls that use it or wait.
type gate struct {
	slots chan struct{}
	users int
}

// enter waits for a slot or the end of ctx. The caller gives the slot back with leave.
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
	// users also counts waiting calls, so that nobody deletes a gate for which a call waits.
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

// callCounts has the counters of calls, see Stats.
type callCounts struct {
	callsOut, callsFailed, callsIn, busy, malformed, replayed, cut, bytesIn, bytesOut atomic.Uint64
}

// calls sends requests to other peers and answers theirs.
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

// close stops answering. It does not wait for answers in progress.
func (c *calls) close() {
	c.host.RemoveStreamHandler(c.prefix + rpcSuffix)
	c.host.RemoveStreamHandler(c.prefix + prioritySuffix)
}

// handle implements DHT.Handle.
func (c *calls) handle(h Handler) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handler = h
}

// Call implements DHT.Call and zone.Caller.
func (c *calls) Call(ctx context.Context, peerID string, req *wire.Request) (*wire.Response, error) {
	if !c.life.Begin() {
		return nil, fmt.Errorf("call: %w", life.ErrClosed)
	}
	defer c.life.End()
	// Without a deadline, a peer that never answers would block its caller for ever.
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.opts.CallTimeout)
		defer cancel()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Close ends the call. The error then wraps life.ErrClosed.
	defer context.AfterFunc(c.life.Context(), func() { cancel(life.ErrClosed) })()
	// The call uses its own Request, because the caller's must not change. The body may be large,
	// so it is shared and not copied.
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
		// The caller must be able to find context.DeadlineExceeded or life.ErrClosed in the error.
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err) // the time was up, so the stream was reset
		}
		return nil, fmt.Errorf("call %s: %w", p, err)
	}
	return res, nil
}

// call makes one call to p, on one stream. It waits for a slot of p's gate first.
func (c *calls) call(ctx context.Context, p peer.ID, req *wire.Request) (*wire.Response, error) {
	if p == c.self {
		return c.answer(ctx, p, req), nil
	}
	gates, ids := &c.gates, []protocol.ID{c.prefix + rpcSuffix}
	if c.opts.Priority != nil && c.opts.Priority(req) {
		// Calls with priority do not wait behind the other calls to this peer.
		gates, ids = &c.priorityGates, []protocol.ID{c.prefix + prioritySuffix, c.prefix + rpcSuffix}
	}
	leave, err := gates.enter(ctx, p)
	if err != nil {
		return nil, err
	}
	defer leave()
	s, err := c.openStream(ctx, p, ids...)
	if err != nil {
		// Nothing was sent on a stream, so the peer has not seen the request.
		return nil, fmt.Errorf("%w: %w", ErrNoPeer, err)
	}
	// Not every transport has deadlines. A reset ends a blocked Read or Write on all of them.
	defer context.AfterFunc(ctx, func() { _ = s.Reset() })()
	res, err := c.exchange(s, req)
	if err != nil {
		_ = s.Reset()
		// The peer may have restarted, so that the connection leads nowhere.
		c.guard.Suspect(p)
		return nil, err
	}
	_ = s.Close() // both directions are finished
	return res, nil
}

// openStream opens a stream, and connects first if there is no connection. It uses the addresses
// that the membership announced, or asks Kademlia if the host knows none.
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

// exchange sends req on s and returns the answer to it. It refuses an answer with another id
// (ErrReplayed). A refusal may have any id, because the other peer may not have read the request.
func (c *calls) exchange(s network.Stream, req *wire.Request) (*wire.Response, error) {
	n, err := wire.WriteRequest(s, req)
	c.count.bytesOut.Add(uint64(n))
	if err != nil {
		return nil, err
	}
	// A peer that has the whole request may stop reading before it sees our end of the stream. QUIC
	// then reports a cancelled stream. Only the answer counts.
	_ = s.CloseWrite()
	res, n, err := wire.ReadResponse(s)
	c.count.bytesIn.Add(uint64(n))
	if err != nil {
		return nil, fmt.Errorf("no answer: %w", err)
	}
	// The id is random for each call, so an old answer has another one.
	if res.GetRefusal() == nil && res.GetId() != req.GetId() {
		c.count.replayed.Add(1)
		return nil, ErrReplayed
	}
	return res, nil
}

// serve answers one call of another peer. A call that finds no place gets the refusal CODE_BUSY. A
// call of an outsider that finds no place is reset.
func (c *calls) serve(s network.Stream) {
	if !c.life.Begin() {
		_ = s.Reset()
		return
	}
	defer c.life.End()
	defer context.AfterFunc(c.life.Context(), func() { _ = s.Reset() })()
	c.count.callsIn.Add(1)
	// libp2p's resource manager counts streams by service.
	if err := s.Scope().SetService(rpcService); err != nil {
		_ = s.Reset()
		return
	}
	l := c.laneOf(s)
	reading := l.reading.Take(s.Conn().RemotePeer(), s.Conn().RemoteMultiaddr())
	if reading == nil && l == &c.lanes.outside {
		c.count.busy.Add(1)
		_ = s.Reset() // before it reads or writes anything, because there may be very many such calls
		return
	}
	// A member without a place gets an answer, so that it waits before it calls again.
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
	// A caller that reads too slowly is cut off after Options.ReadTimeout.
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

// receive reads the request and returns the answer to it. It returns nil if the request did not
// arrive, so that there is nobody to answer. A member's request gives its place for reading back
// once it is read.
func (c *calls) receive(s network.Stream, l *lane, reading *guard.Place) *wire.Response {
	from := s.Conn().RemotePeer()
	// A caller that sends too slowly is cut off.
	late := time.AfterFunc(l.within, func() { _ = s.Reset() })
	req, n, err := wire.ReadRequest(s)
	late.Stop()
	c.count.bytesIn.Add(uint64(n))
	switch {
	// The frame was read completely: a refusal tells the caller what is wrong.
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
	// A member's request is read. It takes a place to be served, and then gives back the one for
	// reading. An outsider keeps its only place.
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
	// Requests that are not urgent, of members and outsiders, leave a quarter of the places free.
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

// faulty counts an invalid request and reports its sender to Options.Faulty.
func (c *calls) faulty(from peer.ID) {
	c.count.malformed.Add(1)
	if c.opts.Faulty != nil {
		c.opts.Faulty(from.String())
	}
}

// answer lets the Handler answer, and completes the answer. If the answer is not valid, the caller
// gets the refusal CODE_INTERNAL.
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
	// The Handler knows the owner, but not this peer's zone and the owner's sealed descriptor.
	c.zones.Sign(res.GetWhoOwns())
	res.Id = req.GetId()
	if err := res.Validate(); err != nil {
		c.log.Error("own answer is not valid", "err", err)
		return refusal(wire.Refusal_CODE_INTERNAL, "the answer is not valid: "+err.Error())
	}
	return res
}

// refusal returns a refusal. A busy one asks the caller to wait for busyRetry.
func refusal(code wire.Refusal_Code, reason string) *wire.Response {
	r := &wire.Refusal{Code: code, Reason: reason[:min(len(reason), wire.MaxText)]}
	if code == wire.Refusal_CODE_BUSY {
		r.RetryAfterMs, r.Pause = uint64(busyRetry.Milliseconds()), true
	}
	return &wire.Response{Version: partition.WireVersion, Refusal: r}
}
