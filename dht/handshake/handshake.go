// Package handshake restricts the protocols of a private swarm to peers that were admitted to it.
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

// Times of handshakes in a private swarm, and their protocol.
const (
	// Protocol is the protocol of handshakes.
	Protocol = "/echo-node/admit/1"
	timeout  = 10 * time.Second // for one handshake
	Within   = 30 * time.Second // a connection without a handshake is closed after this time
	retry    = 5 * time.Second  // between two handshakes on a connection after one failed
)

// ErrRefused is wrapped by the errors that say why one side did not admit the other to a private
// swarm.
var ErrRefused = errors.New("not admitted to the private swarm")

// Host is the host as the protocols of a private swarm see it. These protocols are spoken only with
// an admitted peer: one that proved its admission on an open connection. libp2p has proven the
// peer's id, and the proof of admission is bound to that id. A handshake has five messages:
//
//	hello      asker -> other   version, nonce, swarm, pass
//	challenge  other -> asker   nonce
//	proof      asker -> other   proof of the swarm's key, if the asker has the key
//	verdict    other -> asker   the reason of a refusal; or its own pass, its proof, and a pass to keep
//	thanks     asker -> other   a pass to keep, or nothing
//
// The peer that wants to open a stream is the asker. There is one handshake per connection. A peer
// with an invite or the key gets a lasting pass from the first member that it meets. With that pass
// it needs neither of them later, and can invite others. All methods are safe for concurrent use.
type Host struct {
	host.Host
	opts   Options
	self   peer.ID
	notify *network.NotifyBundle

	mu     sync.Mutex
	closed bool
	pass   *wire.Pass                     // nil = none yet
	conns  map[network.Conn]*incomingConn // the open ones, also those that this peer opened
}

// Options configure a Host.
type Options struct {
	// this peer's private key, Ed25519
	Signer  crypto.PrivKey
	Prefix  string           // of guarded protocols; "" = none is guarded, for a peer that only asks for a charter
	Charter protocol.ID      // outsiders may call it, and learn little; this peer calls it only after a handshake
	Space   string           // digest of the swarm's charter; "" = not known yet
	Founder string           // the id of the swarm's founder; "" = not known yet
	Key     []byte           // the swarm's key; nil = this peer does not have it
	Pass    *wire.Pass       // this peer's own; nil = none yet
	Keep    func(*wire.Pass) // called with a new lasting pass; may be nil
	Refused *guard.Tally     // counts the reasons of refusals
	Life    *life.Life       // nil = this peer only asks, and answers no handshake
	Context context.Context  // its end ends handshakes if Life is nil
	Logger  *slog.Logger
}

// incomingConn is the state of one connection.
type incomingConn struct {
	// the peer at the other end is admitted
	in     bool
	asking chan struct{} // closed when this peer's handshake ends; nil = none in progress
	err    error         // of this peer's last handshake
	at     time.Time     // when that handshake ended
	late   *time.Timer   // closes the connection after Within
}

// New starts to guard the host under. The caller stops the Host, and closes under.
func New(under host.Host, o Options) *Host {
	h := &Host{Host: under, opts: o, self: under.ID(), pass: o.Pass, conns: map[network.Conn]*incomingConn{}}
	h.notify = &network.NotifyBundle{ConnectedF: h.connected, DisconnectedF: h.disconnected}
	h.Network().Notify(h.notify)
	// Connections from before the Notify need a handshake, too.
	for _, c := range h.Network().Conns() {
		h.connected(nil, c)
	}
	h.Host.SetStreamHandler(Protocol, h.answer)
	return h
}

// Stop ends guarding. The host under it stays open.
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

// context returns the context that ends handshakes in progress.
func (h *Host) context() context.Context {
	if h.opts.Life != nil {
		return h.opts.Life.Context()
	}
	return h.opts.Context
}

// connected starts the time within which a connection needs a handshake.
func (h *Host) connected(_ network.Network, c network.Conn) { h.connOf(c) }

// disconnected forgets a closed connection. An admission ends with its connection.
func (h *Host) disconnected(_ network.Network, c network.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if g := h.conns[c]; g != nil {
		g.late.Stop()
		delete(h.conns, c)
	}
}

// connOf returns the state of c, and makes it if c is new.
func (h *Host) connOf(c network.Conn) *incomingConn {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := h.conns[c]
	if g == nil {
		g = &incomingConn{late: time.AfterFunc(Within, func() { h.showOut(c) })}
		if c.IsClosed() || h.closed { // its end may have been reported already
			g.late.Stop()
			return g
		}
		h.conns[c] = g
	}
	return g
}

// showOut closes a connection on which there was no handshake in time.
func (h *Host) showOut(c network.Conn) {
	h.mu.Lock()
	g := h.conns[c]
	// The connection may have been admitted or closed just before the timer fired.
	stay := h.closed || g == nil || g.in
	h.mu.Unlock()
	if !stay {
		h.opts.Refused.Add("late")
		_ = c.Close()
	}
}

// Guarded reports whether the protocol id is only for admitted peers.
func (h *Host) Guarded(id protocol.ID) bool {
	return id == h.opts.Charter || h.opts.Prefix != "" && strings.HasPrefix(string(id), h.opts.Prefix+"/")
}

// SetStreamHandler implements host.Host. Streams of a guarded protocol are reset unless the peer is
// admitted.
func (h *Host) SetStreamHandler(id protocol.ID, serve network.StreamHandler) {
	h.Host.SetStreamHandler(id, h.checked(id, serve))
}

// SetStreamHandlerMatch implements host.Host. It restricts streams like SetStreamHandler.
func (h *Host) SetStreamHandlerMatch(id protocol.ID, match func(protocol.ID) bool, serve network.StreamHandler) {
	h.Host.SetStreamHandlerMatch(id, match, h.checked(id, serve))
}

// checked returns serve, or a handler that lets only streams of admitted peers through to it.
func (h *Host) checked(id protocol.ID, serve network.StreamHandler) network.StreamHandler {
	if !h.Guarded(id) || id == h.opts.Charter { // its own handler tells outsiders that the swarm is private
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

// Passed reports whether the peer at the other end of c is admitted, on c or on another open
// connection. It waits for a handshake of this peer in progress on c, because the other side may
// already have finished it.
func (h *Host) Passed(c network.Conn) bool {
	h.mu.Lock()
	g := h.conns[c]
	var asking chan struct{}
	if g != nil && !g.in {
		asking = g.asking
	}
	h.mu.Unlock()
	if asking != nil {
		<-asking // this ends after timeout at the latest
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	// Each side may have made its handshake on another connection to the same peer.
	for other, g := range h.conns {
		if g.in && other.RemotePeer() == c.RemotePeer() {
			return true
		}
	}
	return false
}

// NewStream implements host.Host. Before a guarded protocol, it makes the handshake if there was
// none.
func (h *Host) NewStream(ctx context.Context, p peer.ID, ids ...protocol.ID) (network.Stream, error) {
	if slices.ContainsFunc(ids, h.Guarded) {
		if err := h.Enter(ctx, p); err != nil {
			return nil, err
		}
	}
	return h.Host.NewStream(ctx, p, ids...)
}

// Enter makes a handshake on every connection to p on which there was none. If there is no
// connection, it connects first. It succeeds if one handshake did. Otherwise it returns an error of
// one of them.
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
	// errs becomes nil with the first success. The first entry is for the case that there is no
	// connection any more.
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

// ask makes one handshake on c, unless there was one. It waits for one in progress. After a failed
// one, it returns that error for the time retry.
func (h *Host) ask(ctx context.Context, c network.Conn) error {
	g := h.connOf(c)
	for {
		h.mu.Lock()
		// There was a handshake on this connection, or one failed a moment ago.
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
	if err == nil || ctx.Err() == nil { // a caller that gives up says nothing about the other side
		g.err, g.at = err, time.Now()
	}
	g.in = g.in || err == nil
	close(g.asking)
	g.asking = nil
	h.mu.Unlock()
	if err != nil {
		h.opts.Logger.Debug("handshake", "peer", c.RemotePeer().String(), "err", err)
	}
	return err
}

// shake is the asker's side of a handshake. It closes the connection if the other side is no
// member.
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
	// The stream must be on this connection. host.NewStream could choose another one.
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
	// The admission goes both ways: the other side must be a member, too.
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
	// The other side came by an invite or the key, so this peer gives it a lasting pass.
	if !a.Lasting {
		thanks.Granted = h.grant(other, a)
	}
	if err := wire.WriteAdmit(s, thanks); err != nil {
		return err
	}
	// Wait until the other side ends the stream, or the time is up. Otherwise the reset above would
	// discard the thanks before they are read. The result does not matter: both sides are admitted
	// by now.
	_ = s.CloseWrite() // an error does not matter, see calls.exchange in package dht
	_, _ = s.Read(make([]byte, 1))
	return nil
}

// turn sends one message and reads the answer to it. A refusal in the answer becomes an error that
// wraps ErrRefused.
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

// answer is the other side of shake. It tells the asker the reason of a refusal.
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

// receive reads the asker's messages, checks its admission, and sends the verdict. An error is the
// reason of a refusal.
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
	// The nonce makes the proof valid only for this handshake.
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
	// The asker is admitted before it reads the verdict, because it opens streams right after that.
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
	if err != nil { // the asker did not accept this peer as a member
		h.opts.Logger.Debug("no thanks", "peer", other.String(), "err", err)
		return nil
	}
	if thanks.Granted != nil {
		h.take(thanks.Granted)
	}
	return nil
}

// verify returns what admits the other peer, or an error with the reason why nothing does. A pass
// counts first, then the proof of the swarm's key. The result is zero for the key. theirs and ours
// are the nonces.
func (h *Host) verify(other peer.ID, shown *wire.Admit, theirs, ours []byte) (wire.Membership, error) {
	err := wire.ErrNoPass
	// Without the founder's id, no pass can be checked.
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

// proof returns the proof for other that this peer has the swarm's key, or nil if it does not.
func (h *Host) proof(other peer.ID, ours, theirs []byte) []byte {
	if len(h.opts.Key) == 0 {
		return nil
	}
	return wire.Proof(h.opts.Key, h.self.String(), other.String(), ours, theirs)
}

// OwnPass returns the pass that this peer shows, or nil if it has none yet. Do not modify.
func (h *Host) OwnPass() *wire.Pass {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pass
}

// Membership returns the content of this peer's own pass. It returns false if there is none yet, or
// an invalid one.
func (h *Host) Membership() (wire.Membership, bool) {
	a, err := h.OwnPass().Check(h.opts.Founder, h.opts.Space, h.self.String(), time.Now())
	return a, err == nil
}

// grant returns a lasting pass for other. It returns nil if this peer itself has no lasting pass.
func (h *Host) grant(other peer.ID, a wire.Membership) *wire.Pass {
	// Only a lasting pass can be the beginning of another one.
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

// take keeps a valid lasting pass for this peer, unless it already has one.
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

// newNonce returns wire.NonceLen random bytes. With it, an old proof is not valid again.
func newNonce() ([]byte, error) {
	n := make([]byte, wire.NonceLen)
	if _, err := rand.Read(n); err != nil {
		return nil, fmt.Errorf("handshake: %w", err)
	}
	return n, nil
}

// reasonOf returns the name of an error, for the other side and for the metric.
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
