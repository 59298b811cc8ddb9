// Package handshake lets nobody speak the protocols of a private swarm who was not let in.
package handshake

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/multiformats/go-multistream"

	"github.com/echo-node/echo-node/dht/guard"
	"github.com/echo-node/echo-node/dht/life"
	"github.com/echo-node/echo-node/dht/wire"
)

// Timing of handshakes of a private swarm.
const (
	// Protocol is that of handshakes.
	Protocol = "/echo-node/admit/1"
	timeout  = 10 * time.Second // of one handshake
	Within   = 30 * time.Second // a connection without a handshake by then is closed
	retry    = 5 * time.Second  // between two handshakes on a connection where one failed
)

// ErrRefused is wrapped by errors that say why one side did not let the
// other into a private swarm.
var ErrRefused = errors.New("not admitted to the private swarm")

// Host is the host as the protocols of a private swarm see it: none of them is
// spoken with a peer that has not shown, on a connection that is open, that it
// was let in. libp2p has proven the peer's id; what is shown is bound to it:
//
//	hello      asker -> other   version, nonce, swarm, pass
//	challenge  other -> asker   nonce
//	proof      asker -> other   that it has the swarm's key, if it has
//	verdict    other -> asker   why not; or its own pass and proof, and a pass to keep
//	thanks     asker -> other   a pass to keep, or nothing
//
// Whoever wants to open a stream is the asker, once for each connection. A peer
// that came by an invite or by the key is given a lasting pass by the first
// member it meets, so that it can be let in, and invite, without them later.
type Host struct {
	host.Host
	opts   Options
	self   peer.ID
	notify *network.NotifyBundle

	mu     sync.Mutex
	closed bool
	pass   *wire.Pass
	conns  map[network.Conn]*incomingConn
}

// Options of a Host.
type Options struct {
	Signer  crypto.PrivKey
	Prefix  string      // guarded protocols begin with it; "" = none are, as of one who asks for a charter
	Charter protocol.ID // is served to strangers, and asked for after a handshake
	Space   string      // the digest of the swarm's charter; "" = not known yet
	Founder string
	Key     []byte           // the swarm's key; nil = not known here
	Pass    *wire.Pass       // nil = none yet
	Keep    func(*wire.Pass) // told of a lasting pass; nil = nobody
	Refused *guard.Tally     // reasons why somebody was not let in
	Life    *life.Life       // nil = this peer asks only, and answers nobody
	Context context.Context  // ends what is under way, without Life
	Logger  *slog.Logger
}

// incomingConn is one connection.
type incomingConn struct {
	in     bool
	asking chan struct{} // closed when our handshake on it ends; nil = none under way
	err    error         // of our last handshake
	at     time.Time     // when that was
	late   *time.Timer
}

// New begins to guard under. The caller stops it, and closes under.
func New(under host.Host, o Options) *Host {
	h := &Host{Host: under, opts: o, self: under.ID(), pass: o.Pass, conns: map[network.Conn]*incomingConn{}}
	h.notify = &network.NotifyBundle{ConnectedF: h.connected, DisconnectedF: h.disconnected}
	h.Network().Notify(h.notify)
	for _, c := range h.Network().Conns() {
		h.connected(nil, c)
	}
	h.Host.SetStreamHandler(Protocol, h.answer)
	return h
}

// Stop ends guarding; the host stays.
func (h *Host) Stop() {
	h.Host.RemoveStreamHandler(Protocol)
	h.Network().StopNotify(h.notify)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, g := range h.conns {
		g.late.Stop()
	}
}

// context ends what is under way.
func (h *Host) context() context.Context {
	if h.opts.Life != nil {
		return h.opts.Life.Context()
	}
	return h.opts.Context
}

func (h *Host) connected(_ network.Network, c network.Conn) { h.connOf(c) }

func (h *Host) disconnected(_ network.Network, c network.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if g := h.conns[c]; g != nil {
		g.late.Stop()
		delete(h.conns, c)
	}
}

// connOf is the entry of c, made when c is new.
func (h *Host) connOf(c network.Conn) *incomingConn {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := h.conns[c]
	if g == nil {
		g = &incomingConn{late: time.AfterFunc(Within, func() { h.showOut(c) })}
		if c.IsClosed() || h.closed { // its end may have been told already
			g.late.Stop()
			return g
		}
		h.conns[c] = g
	}
	return g
}

// showOut closes a connection without a handshake in time.
func (h *Host) showOut(c network.Conn) {
	h.mu.Lock()
	g := h.conns[c]
	stay := h.closed || g == nil || g.in
	h.mu.Unlock()
	if !stay {
		h.opts.Refused.Add("late")
		_ = c.Close()
	}
}

// Guarded says whether id is only for those who are admitted.
func (h *Host) Guarded(id protocol.ID) bool {
	return id == h.opts.Charter || h.opts.Prefix != "" && strings.HasPrefix(string(id), h.opts.Prefix+"/")
}

// SetStreamHandler is host.Host's; a guarded protocol is for admitted peers.
func (h *Host) SetStreamHandler(id protocol.ID, serve network.StreamHandler) {
	h.Host.SetStreamHandler(id, h.checked(id, serve))
}

// SetStreamHandlerMatch is host.Host's, as SetStreamHandler.
func (h *Host) SetStreamHandlerMatch(id protocol.ID, match func(protocol.ID) bool, serve network.StreamHandler) {
	h.Host.SetStreamHandlerMatch(id, match, h.checked(id, serve))
}

func (h *Host) checked(id protocol.ID, serve network.StreamHandler) network.StreamHandler {
	if !h.Guarded(id) || id == h.opts.Charter { // that one says that the swarm is private
		return serve
	}
	return func(s network.Stream) {
		if h.Passed(s.Conn()) {
			serve(s)
			return
		}
		h.opts.Refused.Add("stranger")
		h.opts.Logger.Debug("a peer without a handshake is refused", "peer", s.Conn().RemotePeer().String(),
			"protocol", id)
		_ = s.Reset()
	}
}

// Passed says whether the peer at the other end has been let in, on this
// connection or on another that is open. It waits for a handshake of ours that
// is under way: the other side may be done with it already.
func (h *Host) Passed(c network.Conn) bool {
	h.mu.Lock()
	g := h.conns[c]
	var asking chan struct{}
	if g != nil && !g.in {
		asking = g.asking
	}
	h.mu.Unlock()
	if asking != nil {
		<-asking // it ends by its own time-out
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for other, g := range h.conns {
		if g.in && other.RemotePeer() == c.RemotePeer() {
			return true
		}
	}
	return false
}

// NewStream is host.Host's. Before a guarded protocol is spoken, each side
// shows the other that it was let in.
func (h *Host) NewStream(ctx context.Context, p peer.ID, ids ...protocol.ID) (network.Stream, error) {
	if slices.ContainsFunc(ids, h.Guarded) {
		if err := h.Enter(ctx, p); err != nil {
			return nil, err
		}
	}
	return h.Host.NewStream(ctx, p, ids...)
}

// Enter has both sides admitted on every connection to p, connecting if need be.
func (h *Host) Enter(ctx context.Context, p peer.ID) error {
	conns := h.Network().ConnsToPeer(p)
	if len(conns) == 0 {
		if none, _ := network.GetNoDial(ctx); none {
			return network.ErrNoConn
		}
		if err := h.Connect(ctx, peer.AddrInfo{ID: p}); err != nil {
			return err
		}
		conns = h.Network().ConnsToPeer(p)
	}
	errs := []error{fmt.Errorf("%s: the connection is gone", p)}
	for _, c := range conns {
		err := h.ask(ctx, c)
		if err == nil {
			errs = nil
		} else if errs != nil {
			errs = append(errs, err)
		}
	}
	if errs == nil {
		return nil
	}
	return errs[len(errs)-1]
}

// ask makes one handshake on c, unless one was made or is under way.
func (h *Host) ask(ctx context.Context, c network.Conn) error {
	g := h.connOf(c)
	for {
		h.mu.Lock()
		if g.in || g.err != nil && time.Since(g.at) < retry {
			err := g.err
			if g.in {
				err = nil
			}
			h.mu.Unlock()
			return err
		}
		asking := g.asking
		if asking == nil {
			g.asking = make(chan struct{})
		}
		h.mu.Unlock()
		if asking == nil {
			break
		}
		select {
		case <-asking:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := h.shake(ctx, c)
	h.mu.Lock()
	g.err, g.at = err, time.Now()
	g.in = g.in || err == nil
	close(g.asking)
	g.asking = nil
	h.mu.Unlock()
	if err != nil {
		h.opts.Logger.Debug("handshake", "peer", c.RemotePeer().String(), "err", err)
	}
	return err
}

// shake is the asker's side of the handshake.
func (h *Host) shake(ctx context.Context, c network.Conn) error {
	ctx, cancel := context.WithTimeout(network.WithAllowLimitedConn(ctx, "admission"), timeout)
	defer cancel()
	s, err := c.NewStream(ctx)
	if err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	defer func() { _ = s.Reset() }() // nothing more is expected
	defer context.AfterFunc(ctx, func() { _ = s.Reset() })()
	defer context.AfterFunc(h.context(), func() { _ = s.Reset() })()
	if err := s.SetProtocol(Protocol); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	if err := multistream.SelectProtoOrFail(protocol.ID(Protocol), s); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	other := c.RemotePeer()
	hello := &wire.Admit{Version: wire.AdmitVersion, Space: h.opts.Space, Pass: h.OwnPass()}
	if hello.Nonce, err = newNonce(); err != nil {
		return err
	}
	challenge, err := turn(s, hello)
	if err != nil {
		return err
	}
	verdict, err := turn(s, &wire.Admit{Proof: h.proof(other, hello.Nonce, challenge.Nonce)})
	if err != nil {
		return err
	}
	a, err := h.verify(other, verdict, challenge.Nonce, hello.Nonce)
	if err != nil {
		h.opts.Refused.Add(reasonOf(err))
		_ = c.Close()
		return fmt.Errorf("%w: %s is no member: %w", ErrRefused, other, err)
	}
	if verdict.Granted != nil {
		h.take(verdict.Granted)
	}
	thanks := &wire.Admit{}
	if !a.Lasting {
		thanks.Granted = h.grant(other, a)
	}
	if err := wire.WriteAdmit(s, thanks); err != nil {
		return err
	}
	// Until the other side ends it, or the time is up: the reset above would drop
	// thanks that were not read. Both are in by now, whatever comes.
	_ = s.CloseWrite() // see exchange
	_, _ = s.Read(make([]byte, 1))
	return nil
}

// turn says something and reads what the other side says to it.
func turn(s network.Stream, m *wire.Admit) (*wire.Admit, error) {
	if err := wire.WriteAdmit(s, m); err != nil {
		return nil, err
	}
	answer, err := wire.ReadAdmit(s)
	if err != nil {
		return nil, err
	}
	if answer.Refused != "" {
		return nil, fmt.Errorf("%w: %s refuses this peer: %s", ErrRefused, s.Conn().RemotePeer(), answer.Refused)
	}
	return answer, nil
}

// answer is the other side of shake.
func (h *Host) answer(s network.Stream) {
	if h.opts.Life == nil || !h.opts.Life.Begin() {
		_ = s.Reset()
		return
	}
	defer h.opts.Life.End()
	defer context.AfterFunc(h.context(), func() { _ = s.Reset() })()
	late := time.AfterFunc(timeout, func() { _ = s.Reset() })
	defer late.Stop()
	err := h.receive(s)
	if err == nil {
		_ = s.Close()
		return
	}
	reason := reasonOf(err)
	h.opts.Refused.Add(reason)
	h.opts.Logger.Info("a peer is not let in", "peer", s.Conn().RemotePeer().String(), "reason", reason, "err", err)
	if err := wire.WriteAdmit(s, &wire.Admit{Refused: reason}); err != nil {
		_ = s.Reset()
		return
	}
	_ = s.Close()
}

func (h *Host) receive(s network.Stream) error {
	hello, err := wire.ReadAdmit(s)
	if err != nil {
		return err
	}
	switch {
	case hello.Version != wire.AdmitVersion:
		return fmt.Errorf("handshake version %d: %w", hello.Version, wire.ErrVersion)
	case len(hello.Nonce) == 0:
		return fmt.Errorf("hello without a nonce: %w", wire.ErrMalformed)
	case hello.Space != "" && hello.Space != h.opts.Space:
		return fmt.Errorf("%.64q: %w", hello.Space, wire.ErrSpace)
	}
	nonce, err := newNonce()
	if err != nil {
		return err
	}
	if err := wire.WriteAdmit(s, &wire.Admit{Nonce: nonce}); err != nil {
		return err
	}
	proof, err := wire.ReadAdmit(s)
	if err != nil {
		return err
	}
	other := s.Conn().RemotePeer()
	a, err := h.verify(other, &wire.Admit{Pass: hello.Pass, Proof: proof.Proof}, hello.Nonce, nonce)
	if err != nil {
		return err
	}
	g := h.connOf(s.Conn())
	h.mu.Lock()
	g.in = true
	h.mu.Unlock()
	verdict := &wire.Admit{Pass: h.OwnPass(), Proof: h.proof(other, nonce, hello.Nonce)}
	if !a.Lasting {
		verdict.Granted = h.grant(other, a)
	}
	if err := wire.WriteAdmit(s, verdict); err != nil {
		return err
	}
	thanks, err := wire.ReadAdmit(s)
	if err != nil { // it did not take this peer for a member, and says so nowhere
		h.opts.Logger.Debug("no thanks", "peer", other.String(), "err", err)
		return nil
	}
	if thanks.Granted != nil {
		h.take(thanks.Granted)
	}
	return nil
}

// verify says by what the other is let in, or why not.
func (h *Host) verify(other peer.ID, shown *wire.Admit, theirs, ours []byte) (wire.Membership, error) {
	err := wire.ErrNoPass
	if h.opts.Founder != "" {
		var a wire.Membership
		if a, err = shown.Pass.Check(h.opts.Founder, h.opts.Space, other.String(), time.Now()); err == nil {
			return a, nil
		}
	}
	if len(shown.Proof) == 0 {
		return wire.Membership{}, err
	}
	if wire.ProofGood(h.opts.Key, shown.Proof, other.String(), h.self.String(), theirs, ours) {
		return wire.Membership{}, nil
	}
	return wire.Membership{}, errors.Join(errKey, err)
}

var errKey = errors.New("another key than the swarm's, or no key here to check it with")

func (h *Host) proof(other peer.ID, ours, theirs []byte) []byte {
	if len(h.opts.Key) == 0 {
		return nil
	}
	return wire.Proof(h.opts.Key, h.self.String(), other.String(), ours, theirs)
}

// OwnPass is what this peer shows; nil when it has none yet. Do not modify.
func (h *Host) OwnPass() *wire.Pass {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pass
}

// Membership is what this peer's own pass says; false when it has none yet.
func (h *Host) Membership() (wire.Membership, bool) {
	a, err := h.OwnPass().Check(h.opts.Founder, h.opts.Space, h.self.String(), time.Now())
	return a, err == nil
}

// grant lets other in for good, if this peer's own pass is for good.
func (h *Host) grant(other peer.ID, a wire.Membership) *wire.Pass {
	if own, ok := h.Membership(); !ok || !own.Lasting || h.opts.Space == "" {
		return nil
	}
	p, err := h.OwnPass().Grant(h.opts.Signer, h.opts.Space,
		&wire.GrantBody{Subject: other.String(), IssuedMs: time.Now().UnixMilli(), Inviter: a.Inviter})
	if err != nil {
		h.opts.Logger.Warn("a lasting pass cannot be given", "peer", other.String(), "err", err)
		return nil
	}
	h.opts.Logger.Info("a peer is let in", "peer", other.String(), "inviter", a.Inviter)
	return p
}

// take keeps a lasting pass, unless there is one.
func (h *Host) take(p *wire.Pass) {
	if own, ok := h.Membership(); ok && own.Lasting || h.opts.Founder == "" {
		return
	}
	if a, err := p.Check(h.opts.Founder, h.opts.Space, h.self.String(), time.Now()); err != nil || !a.Lasting {
		h.opts.Logger.Warn("a member gave a pass that is none", "err", err)
		return
	}
	h.mu.Lock()
	h.pass = p
	h.mu.Unlock()
	if h.opts.Keep != nil {
		h.opts.Keep(p)
	}
}

func newNonce() ([]byte, error) {
	n := make([]byte, wire.NonceLen)
	if _, err := rand.Read(n); err != nil {
		return nil, fmt.Errorf("handshake: %w", err)
	}
	return n, nil
}

// reasonOf names what is wrong, for the other side and for the metric.
func reasonOf(err error) string {
	for _, r := range []struct {
		err  error
		name string
	}{{errKey, "wrong-key"}, {wire.ErrNoPass, "stranger"}, {wire.ErrExpired, "expired"}, {wire.ErrSignature, "forged"},
		{wire.ErrOtherPeer, "other-peer"}, {wire.ErrNoMember, "no-member"}, {wire.ErrSpace, "other-swarm"},
		{wire.ErrTooLarge, "oversize"}, {wire.ErrVersion, "version"}, {wire.ErrMalformed, "malformed"},
		{wire.ErrFrame, "malformed"}} {
		if errors.Is(err, r.err) {
			return r.name
		}
	}
	return "cut"
}
