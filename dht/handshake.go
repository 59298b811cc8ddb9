package dht

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

	"github.com/echo-node/echo-node/dht/wire"
)

// Timing of handshakes of a private swarm.
const (
	handshakeProtocol = "/echo-node/admit/1"
	handshakeTimeout  = 10 * time.Second // of one handshake
	handshakeWithin   = 30 * time.Second // a connection without a handshake by then is closed
	handshakeRetry    = 5 * time.Second  // between two handshakes on a connection where one failed
)

// ErrHandshake is wrapped by errors that say why one side did not let the
// other into a private swarm.
var ErrHandshake = errors.New("not admitted to the private swarm")

// handshaker is the host as the protocols of a private swarm see it: none of them is
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
type handshaker struct {
	host.Host
	self    peer.ID
	signer  crypto.PrivKey
	prefix  string // guarded protocols begin with it; "" = none are, as of one who asks for a charter
	space   string // "" = not known yet
	founder string
	key     []byte // the swarm's key; nil = not known here
	log     *slog.Logger
	refused *tally
	keep    func(*wire.Pass) // told of a lasting pass; nil = nobody
	begin   func() bool      // counts a goroutine of the owner's; end takes it back
	end     func()
	ctx     context.Context // ends what is under way
	notify  *network.NotifyBundle

	mu     sync.Mutex
	closed bool
	pass   *wire.Pass
	conns  map[network.Conn]*incomingConn
}

// incomingConn is one connection.
type incomingConn struct {
	in     bool
	asking chan struct{} // closed when our handshake on it ends; nil = none under way
	err    error         // of our last handshake
	at     time.Time     // when that was
	late   *time.Timer
}

// open begins to guard. The caller has set every field above mu, and pass.
func (d *handshaker) open() {
	d.conns = map[network.Conn]*incomingConn{}
	d.notify = &network.NotifyBundle{ConnectedF: d.connected, DisconnectedF: d.disconnected}
	d.Network().Notify(d.notify)
	for _, c := range d.Network().Conns() {
		d.connected(nil, c)
	}
	d.Host.SetStreamHandler(handshakeProtocol, d.answer)
}

// close stops guarding; the host stays.
func (d *handshaker) close() {
	d.Host.RemoveStreamHandler(handshakeProtocol)
	d.Network().StopNotify(d.notify)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, g := range d.conns {
		g.late.Stop()
	}
}

func (d *handshaker) connected(_ network.Network, c network.Conn) { d.connOf(c) }

func (d *handshaker) disconnected(_ network.Network, c network.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if g := d.conns[c]; g != nil {
		g.late.Stop()
		delete(d.conns, c)
	}
}

// connOf is the entry of c, made when c is new.
func (d *handshaker) connOf(c network.Conn) *incomingConn {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.conns[c]
	if g == nil {
		g = &incomingConn{late: time.AfterFunc(handshakeWithin, func() { d.showOut(c) })}
		if c.IsClosed() || d.closed { // its end may have been told already
			g.late.Stop()
			return g
		}
		d.conns[c] = g
	}
	return g
}

// showOut closes a connection without a handshake in time.
func (d *handshaker) showOut(c network.Conn) {
	d.mu.Lock()
	g := d.conns[c]
	stay := d.closed || g == nil || g.in
	d.mu.Unlock()
	if !stay {
		d.refused.add("late")
		_ = c.Close()
	}
}

// guarded says whether id is only for those who are admitted.
func (d *handshaker) guarded(id protocol.ID) bool {
	return id == charterProtocol || d.prefix != "" && strings.HasPrefix(string(id), d.prefix+"/")
}

// SetStreamHandler is host.Host's; a guarded protocol is for admitted peers.
func (d *handshaker) SetStreamHandler(id protocol.ID, h network.StreamHandler) {
	d.Host.SetStreamHandler(id, d.checked(id, h))
}

// SetStreamHandlerMatch is host.Host's, as SetStreamHandler.
func (d *handshaker) SetStreamHandlerMatch(id protocol.ID, match func(protocol.ID) bool, h network.StreamHandler) {
	d.Host.SetStreamHandlerMatch(id, match, d.checked(id, h))
}

func (d *handshaker) checked(id protocol.ID, h network.StreamHandler) network.StreamHandler {
	if !d.guarded(id) || id == charterProtocol { // that one says that the swarm is private
		return h
	}
	return func(s network.Stream) {
		if d.passed(s.Conn()) {
			h(s)
			return
		}
		d.refused.add("stranger")
		d.log.Debug("a peer without a handshake is refused", "peer", s.Conn().RemotePeer().String(), "protocol", id)
		_ = s.Reset()
	}
}

// passed says whether the peer at the other end has been let in, on this
// connection or on another that is open. It waits for a handshake of ours that
// is under way: the other side may be done with it already.
func (d *handshaker) passed(c network.Conn) bool {
	d.mu.Lock()
	g := d.conns[c]
	var asking chan struct{}
	if g != nil && !g.in {
		asking = g.asking
	}
	d.mu.Unlock()
	if asking != nil {
		<-asking // it ends by its own time-out
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for other, g := range d.conns {
		if g.in && other.RemotePeer() == c.RemotePeer() {
			return true
		}
	}
	return false
}

// NewStream is host.Host's. Before a guarded protocol is spoken, each side
// shows the other that it was let in.
func (d *handshaker) NewStream(ctx context.Context, p peer.ID, ids ...protocol.ID) (network.Stream, error) {
	if slices.ContainsFunc(ids, d.guarded) {
		if err := d.enter(ctx, p); err != nil {
			return nil, err
		}
	}
	return d.Host.NewStream(ctx, p, ids...)
}

// enter has both sides admitted on every connection to p, connecting if need be.
func (d *handshaker) enter(ctx context.Context, p peer.ID) error {
	conns := d.Network().ConnsToPeer(p)
	if len(conns) == 0 {
		if none, _ := network.GetNoDial(ctx); none {
			return network.ErrNoConn
		}
		if err := d.Connect(ctx, peer.AddrInfo{ID: p}); err != nil {
			return err
		}
		conns = d.Network().ConnsToPeer(p)
	}
	errs := []error{fmt.Errorf("%s: the connection is gone", p)}
	for _, c := range conns {
		err := d.ask(ctx, c)
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
func (d *handshaker) ask(ctx context.Context, c network.Conn) error {
	g := d.connOf(c)
	for {
		d.mu.Lock()
		if g.in || g.err != nil && time.Since(g.at) < handshakeRetry {
			err := g.err
			if g.in {
				err = nil
			}
			d.mu.Unlock()
			return err
		}
		asking := g.asking
		if asking == nil {
			g.asking = make(chan struct{})
		}
		d.mu.Unlock()
		if asking == nil {
			break
		}
		select {
		case <-asking:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := d.shake(ctx, c)
	d.mu.Lock()
	g.err, g.at = err, time.Now()
	g.in = g.in || err == nil
	close(g.asking)
	g.asking = nil
	d.mu.Unlock()
	if err != nil {
		d.log.Debug("handshake", "peer", c.RemotePeer().String(), "err", err)
	}
	return err
}

// shake is the asker's side of the handshake.
func (d *handshaker) shake(ctx context.Context, c network.Conn) error {
	ctx, cancel := context.WithTimeout(network.WithAllowLimitedConn(ctx, "admission"), handshakeTimeout)
	defer cancel()
	s, err := c.NewStream(ctx)
	if err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	defer func() { _ = s.Reset() }() // nothing more is expected
	defer context.AfterFunc(ctx, func() { _ = s.Reset() })()
	defer context.AfterFunc(d.ctx, func() { _ = s.Reset() })()
	if err := s.SetProtocol(handshakeProtocol); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	if err := multistream.SelectProtoOrFail(protocol.ID(handshakeProtocol), s); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	other := c.RemotePeer()
	hello := &wire.Admit{Version: wire.AdmitVersion, Space: d.space, Pass: d.ownPass()}
	if hello.Nonce, err = newNonce(); err != nil {
		return err
	}
	challenge, err := turn(s, hello)
	if err != nil {
		return err
	}
	verdict, err := turn(s, &wire.Admit{Proof: d.proof(other, hello.Nonce, challenge.Nonce)})
	if err != nil {
		return err
	}
	a, err := d.verify(other, verdict, challenge.Nonce, hello.Nonce)
	if err != nil {
		d.refused.add(reasonOf(err))
		_ = c.Close()
		return fmt.Errorf("%w: %s is no member: %w", ErrHandshake, other, err)
	}
	if verdict.Granted != nil {
		d.take(verdict.Granted)
	}
	thanks := &wire.Admit{}
	if !a.Lasting {
		thanks.Granted = d.grant(other, a)
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
		return nil, fmt.Errorf("%w: %s refuses this peer: %s", ErrHandshake, s.Conn().RemotePeer(), answer.Refused)
	}
	return answer, nil
}

// answer is the other side of shake.
func (d *handshaker) answer(s network.Stream) {
	if !d.begin() {
		_ = s.Reset()
		return
	}
	defer d.end()
	defer context.AfterFunc(d.ctx, func() { _ = s.Reset() })()
	late := time.AfterFunc(handshakeTimeout, func() { _ = s.Reset() })
	defer late.Stop()
	err := d.receive(s)
	if err == nil {
		_ = s.Close()
		return
	}
	reason := reasonOf(err)
	d.refused.add(reason)
	d.log.Info("a peer is not let in", "peer", s.Conn().RemotePeer().String(), "reason", reason, "err", err)
	if err := wire.WriteAdmit(s, &wire.Admit{Refused: reason}); err != nil {
		_ = s.Reset()
		return
	}
	_ = s.Close()
}

func (d *handshaker) receive(s network.Stream) error {
	hello, err := wire.ReadAdmit(s)
	if err != nil {
		return err
	}
	switch {
	case hello.Version != wire.AdmitVersion:
		return fmt.Errorf("handshake version %d: %w", hello.Version, wire.ErrVersion)
	case len(hello.Nonce) == 0:
		return fmt.Errorf("hello without a nonce: %w", wire.ErrMalformed)
	case hello.Space != "" && hello.Space != d.space:
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
	a, err := d.verify(other, &wire.Admit{Pass: hello.Pass, Proof: proof.Proof}, hello.Nonce, nonce)
	if err != nil {
		return err
	}
	g := d.connOf(s.Conn())
	d.mu.Lock()
	g.in = true
	d.mu.Unlock()
	verdict := &wire.Admit{Pass: d.ownPass(), Proof: d.proof(other, nonce, hello.Nonce)}
	if !a.Lasting {
		verdict.Granted = d.grant(other, a)
	}
	if err := wire.WriteAdmit(s, verdict); err != nil {
		return err
	}
	thanks, err := wire.ReadAdmit(s)
	if err != nil { // it did not take this peer for a member, and says so nowhere
		d.log.Debug("no thanks", "peer", other.String(), "err", err)
		return nil
	}
	if thanks.Granted != nil {
		d.take(thanks.Granted)
	}
	return nil
}

// verify says by what the other is let in, or why not.
func (d *handshaker) verify(other peer.ID, shown *wire.Admit, theirs, ours []byte) (wire.Membership, error) {
	err := wire.ErrNoPass
	if d.founder != "" {
		var a wire.Membership
		if a, err = shown.Pass.Check(d.founder, d.space, other.String(), time.Now()); err == nil {
			return a, nil
		}
	}
	if len(shown.Proof) == 0 {
		return wire.Membership{}, err
	}
	if wire.ProofGood(d.key, shown.Proof, other.String(), d.self.String(), theirs, ours) {
		return wire.Membership{}, nil
	}
	return wire.Membership{}, errors.Join(errKey, err)
}

var errKey = errors.New("another key than the swarm's, or no key here to check it with")

func (d *handshaker) proof(other peer.ID, ours, theirs []byte) []byte {
	if len(d.key) == 0 {
		return nil
	}
	return wire.Proof(d.key, d.self.String(), other.String(), ours, theirs)
}

func (d *handshaker) ownPass() *wire.Pass {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pass
}

// membership is what this peer's own pass says; false when it has none yet.
func (d *handshaker) membership() (wire.Membership, bool) {
	a, err := d.ownPass().Check(d.founder, d.space, d.self.String(), time.Now())
	return a, err == nil
}

// grant lets other in for good, if this peer's own pass is for good.
func (d *handshaker) grant(other peer.ID, a wire.Membership) *wire.Pass {
	if own, ok := d.membership(); !ok || !own.Lasting || d.space == "" {
		return nil
	}
	p, err := d.ownPass().Grant(d.signer, d.space,
		&wire.GrantBody{Subject: other.String(), IssuedMs: time.Now().UnixMilli(), Inviter: a.Inviter})
	if err != nil {
		d.log.Warn("a lasting pass cannot be given", "peer", other.String(), "err", err)
		return nil
	}
	d.log.Info("a peer is let in", "peer", other.String(), "inviter", a.Inviter)
	return p
}

// take keeps a lasting pass, unless there is one.
func (d *handshaker) take(p *wire.Pass) {
	if own, ok := d.membership(); ok && own.Lasting || d.founder == "" {
		return
	}
	if a, err := p.Check(d.founder, d.space, d.self.String(), time.Now()); err != nil || !a.Lasting {
		d.log.Warn("a member gave a pass that is none", "err", err)
		return
	}
	d.mu.Lock()
	d.pass = p
	d.mu.Unlock()
	if d.keep != nil {
		d.keep(p)
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
