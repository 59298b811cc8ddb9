package dht

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/echo-node/echo-node/dht/wire"
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

// Call sends req to the peer and returns its answer, which may be a refusal.
// It uses one stream, and ends with ctx, or after Options.CallTimeout when ctx
// has no deadline. The error wraps ErrNoPeer when the peer could not be reached
// and so has not seen req; after any other error it may have. A call to this
// peer itself goes to the Handler directly. An unset version is filled in.
func (d *DHT) Call(ctx context.Context, peerID string, req *wire.Request) (*wire.Response, error) {
	if !d.begin() {
		return nil, fmt.Errorf("call: %w", ErrClosed)
	}
	defer d.running.Done()
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.opts.CallTimeout)
		defer cancel()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(d.ctx, func() { cancel(ErrClosed) })()
	// The caller's request is not written to, and its body, which may be large,
	// not copied.
	req = &wire.Request{Version: cmp.Or(req.GetVersion(), partition.WireVersion), View: req.GetView(),
		Id: rand.Uint64(), Body: req.GetBody()}
	p, err := decodePeer(peerID)
	if err != nil {
		return nil, fmt.Errorf("call: %w", err)
	}
	d.counters.callsOut.Add(1)
	next := func(ctx context.Context, req *wire.Request) (*wire.Response, error) { return d.call(ctx, p, req) }
	var res *wire.Response
	if d.opts.Around == nil || p == d.self {
		res, err = next(ctx, req)
	} else {
		res, err = d.opts.Around(ctx, peerID, req, next)
	}
	if err != nil {
		d.counters.callsFailed.Add(1)
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err) // the stream was reset because the time was up
		}
		return nil, fmt.Errorf("call %s: %w", p, err)
	}
	return res, nil
}

func (d *DHT) call(ctx context.Context, p peer.ID, req *wire.Request) (*wire.Response, error) {
	if p == d.self {
		return d.answer(ctx, p, req), nil
	}
	gates, ids := &d.gates, []protocol.ID{d.prefix + rpcSuffix}
	if d.opts.Priority != nil && d.opts.Priority(req) {
		gates, ids = &d.priorityGates, []protocol.ID{d.prefix + prioritySuffix, d.prefix + rpcSuffix}
	}
	leave, err := gates.enter(ctx, p)
	if err != nil {
		return nil, err
	}
	defer leave()
	s, err := d.openStream(ctx, p, ids...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoPeer, err)
	}
	// The one way to end a blocked Read or Write that every transport has.
	defer context.AfterFunc(ctx, func() { _ = s.Reset() })()
	res, err := d.exchange(s, req)
	if err != nil {
		_ = s.Reset()
		d.suspect(p)
		return nil, err
	}
	_ = s.Close() // both directions are done
	return res, nil
}

// openStream connects if need be; the addresses are those that the membership
// or Kademlia knows.
func (d *DHT) openStream(ctx context.Context, p peer.ID, ids ...protocol.ID) (network.Stream, error) {
	if d.host.Network().Connectedness(p) != network.Connected && len(d.host.Peerstore().Addrs(p)) == 0 {
		info, err := d.kad.FindPeer(ctx, p)
		if err != nil {
			return nil, err
		}
		if err := d.host.Connect(ctx, info); err != nil {
			return nil, err
		}
	}
	return d.host.NewStream(ctx, p, ids...)
}

func (d *DHT) exchange(s network.Stream, req *wire.Request) (*wire.Response, error) {
	n, err := wire.WriteRequest(s, req)
	d.counters.bytesOut.Add(uint64(n))
	if err != nil {
		return nil, err
	}
	// A peer that has the whole request may stop reading before our end of it
	// arrives; QUIC then says that the stream is cancelled. The answer decides.
	_ = s.CloseWrite()
	res, n, err := wire.ReadResponse(s)
	d.counters.bytesIn.Add(uint64(n))
	if err != nil {
		return nil, fmt.Errorf("no answer: %w", err)
	}
	if res.GetRefusal() == nil && res.GetId() != req.GetId() {
		d.counters.replayed.Add(1)
		return nil, ErrReplayed
	}
	return res, nil
}

// serve answers one call of another peer.
func (d *DHT) serve(s network.Stream) {
	if !d.begin() {
		_ = s.Reset()
		return
	}
	defer d.running.Done()
	defer context.AfterFunc(d.ctx, func() { _ = s.Reset() })()
	d.counters.callsIn.Add(1)
	if err := s.Scope().SetService(rpcService); err != nil {
		_ = s.Reset()
		return
	}
	l := d.laneOf(s)
	reading := l.reading.take(s.Conn().RemotePeer(), s.Conn().RemoteMultiaddr())
	if reading == nil && l == &d.lanes.outside {
		d.counters.busy.Add(1)
		_ = s.Reset() // before anything is read or written: it may be one of very many
		return
	}
	res := refusal(wire.Refusal_CODE_BUSY, "too many calls at once")
	if reading == nil {
		d.counters.busy.Add(1)
	} else {
		defer reading.leave()
		res = d.receive(s, l, reading)
	}
	if res == nil {
		_ = s.Reset()
		return
	}
	// A caller that reads too slowly is cut off.
	late := time.AfterFunc(d.opts.ReadTimeout, func() { _ = s.Reset() })
	defer late.Stop()
	n, err := wire.WriteResponse(s, res)
	d.counters.bytesOut.Add(uint64(n))
	if err != nil {
		d.log.Debug("answer not sent", "peer", s.Conn().RemotePeer().String(), "err", err)
		_ = s.Reset()
		return
	}
	_ = s.Close()
}

// receive reads the request and has it answered; nil when there is nobody to
// answer to. A member's request leaves its place for reading once it is read.
func (d *DHT) receive(s network.Stream, l *lane, reading *place) *wire.Response {
	from := s.Conn().RemotePeer()
	// A caller that sends too slowly is cut off.
	late := time.AfterFunc(l.within, func() { _ = s.Reset() })
	req, n, err := wire.ReadRequest(s)
	late.Stop()
	d.counters.bytesIn.Add(uint64(n))
	switch {
	case errors.Is(err, wire.ErrNoBody), errors.Is(err, wire.ErrVersion):
		d.faulty(from)
		return refusal(wire.Refusal_CODE_UNSUPPORTED, err.Error())
	case errors.Is(err, wire.ErrMalformed), errors.Is(err, wire.ErrTooLarge), errors.Is(err, wire.ErrFrame):
		d.faulty(from)
		return refusal(wire.Refusal_CODE_MALFORMED, err.Error())
	case err != nil:
		d.counters.cut.Add(1)
		return nil
	}
	urgent := d.opts.Priority != nil && d.opts.Priority(req)
	switch l {
	case &d.lanes.priority:
		if !urgent {
			d.faulty(from)
			return refusal(wire.Refusal_CODE_MALFORMED, "not a request for this protocol")
		}
		serving := d.lanes.serving.take(from, s.Conn().RemoteMultiaddr())
		if serving == nil {
			d.counters.busy.Add(1)
			return refusal(wire.Refusal_CODE_BUSY, "too many calls at once")
		}
		defer serving.leave()
		reading.leave()
	case &d.lanes.inside:
		if !d.places.take(from) {
			d.counters.busy.Add(1)
			return refusal(wire.Refusal_CODE_BUSY, "too many calls at once")
		}
		defer d.places.leave(from)
		reading.leave()
	}
	if !urgent {
		if !d.places.takeBulk() {
			d.counters.busy.Add(1)
			return refusal(wire.Refusal_CODE_BUSY, "too many calls at once")
		}
		defer d.places.leaveBulk()
	}
	ctx, cancel := context.WithTimeout(d.ctx, d.opts.ServeTimeout)
	defer cancel()
	return d.answer(ctx, from, req)
}

// faulty takes note of a request that is no good.
func (d *DHT) faulty(from peer.ID) {
	d.counters.malformed.Add(1)
	if d.opts.Faulty != nil {
		d.opts.Faulty(from.String())
	}
}

// answer has the Handler answer and makes its answer valid.
func (d *DHT) answer(ctx context.Context, from peer.ID, req *wire.Request) *wire.Response {
	d.mu.Lock()
	h := d.handler
	d.mu.Unlock()
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
	d.signZone(res.GetWhoOwns())
	res.Id = req.GetId()
	if err := res.Validate(); err != nil {
		d.log.Error("own answer is not valid", "err", err)
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
