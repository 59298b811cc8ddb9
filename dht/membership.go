package dht

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"google.golang.org/protobuf/proto"

	"github.com/echo-node/echo-node/dht/guard"
	"github.com/echo-node/echo-node/dht/handshake"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

// passFile is the file in Options.Dir with this peer's lasting pass.
const passFile = "admission.pass"

// Membership says how a peer came into a private swarm.
type Membership = wire.Membership

// Ways has what a peer may show to be admitted to a private swarm. The zero value has no way.
type Ways struct {
	Invite   *wire.Invite // as ParseInvite returns it; nil = none
	SwarmKey []byte       // wire.SwarmKeyLen bytes that the members share; empty = none
}

// handshaker returns a host for a peer that does not know the charter yet. Such a host is used only
// to ask for the charter. It returns nil if there is no way.
func (w Ways) handshaker(ctx context.Context, h host.Host, key crypto.PrivKey) (*handshake.Host, error) {
	if w.Invite == nil && len(w.SwarmKey) == 0 {
		return nil, nil
	}
	// It has no Life, so it asks and never answers. Its prefix is empty, because the charter is the
	// only guarded protocol.
	o := handshake.Options{Signer: key, Key: w.SwarmKey, Charter: charterProtocol,
		Refused: &guard.Tally{}, Context: ctx, Logger: slog.New(slog.DiscardHandler)}
	if w.Invite != nil {
		if err := w.Invite.Check(time.Now()); err != nil {
			return nil, err
		}
		var err error
		o.Space, o.Founder = w.Invite.Space, w.Invite.Founder
		if o.Pass, err = w.Invite.Redeem(h.ID().String(), time.Now()); err != nil {
			return nil, err
		}
	}
	return handshake.New(h, o), nil
}

// open returns the charter, if its signature is valid and it is the swarm of the invite.
func (w Ways) open(sealed *wire.SealedCharter) (partition.Charter, error) {
	c, err := sealed.Open()
	if err == nil && w.Invite != nil && c.Digest() != w.Invite.Space {
		return partition.Charter{},
			fmt.Errorf("%w: the invite is for another swarm than %s", handshake.ErrRefused, c.Name)
	}
	return c, err
}

// openHandshaker makes the handshake.Host of a private swarm. Everything that is made later uses it
// as its host.
func (d *DHT) openHandshaker() error {
	o := d.opts
	pass, err := d.loadPass()
	if err != nil {
		return err
	}
	// Without a valid pass, the swarm's key is enough. Without either, every handshake would fail,
	// so New does.
	_, err = pass.Check(o.Charter.Founder, d.space, d.self.String(), time.Now())
	if err != nil && len(o.SwarmKey) == 0 {
		return fmt.Errorf("the swarm %s is private: an invite or its key is needed: %w", o.Charter.Name,
			handshake.ErrRefused)
	}
	d.handshaker = handshake.New(d.host, handshake.Options{Signer: o.Key, Prefix: string(d.prefix),
		Charter: charterProtocol, Space: d.space, Founder: o.Charter.Founder, Key: o.SwarmKey, Pass: pass,
		Keep: d.savePass, Refused: &d.handshakeFailed, Life: d.life, Logger: d.log})
	d.host = d.handshaker
	return nil
}

// loadPass reads the pass from Dir, or makes one from the invite. The founder's pass is empty. It
// returns nil if this peer has no pass yet.
func (d *DHT) loadPass() (*wire.Pass, error) {
	founder, self := d.opts.Charter.Founder, d.self.String()
	// The founder's pass is an empty chain of grants.
	if founder == self {
		return &wire.Pass{}, nil
	}
	if d.opts.Dir != "" {
		b, err := os.ReadFile(filepath.Join(d.opts.Dir, passFile))
		if err == nil {
			pass, err := wire.ParsePass(b)
			if err == nil {
				if _, err = pass.Check(founder, d.space, self, time.Now()); err == nil {
					return pass, nil
				}
			}
			d.log.Warn("the kept pass is not good, doing without", "file", passFile, "err", err)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read pass: %w", err)
		}
	}
	// There is no valid pass in Dir. An invite gives one until a member grants a lasting one.
	inv := d.opts.Invite
	if inv == nil {
		return nil, nil
	}
	if inv.Space != d.space {
		return nil, fmt.Errorf("invite: %w than %s: %w", wire.ErrSpace, d.opts.Charter.Name, handshake.ErrRefused)
	}
	if err := inv.Check(time.Now()); err != nil {
		return nil, fmt.Errorf("%w: %w", handshake.ErrRefused, err)
	}
	return inv.Redeem(self, time.Now())
}

// savePass keeps a lasting pass in Dir. If it cannot write the pass, the peer asks for another one
// after its next start, with its invite or the key.
func (d *DHT) savePass(p *wire.Pass) {
	if d.opts.Dir == "" {
		return
	}
	b, err := proto.Marshal(p)
	if err == nil {
		err = writeFile(filepath.Join(d.opts.Dir, passFile), b)
	}
	if err != nil {
		d.log.Warn("the pass cannot be kept: the invite will be needed again", "file", passFile, "err", err)
	}
}

// Membership returns how this peer came into its private swarm. It returns false in an open swarm,
// and while the peer has only the swarm's key to show.
func (d *DHT) Membership() (Membership, bool) {
	if d.handshaker == nil {
		return Membership{}, false
	}
	return d.handshaker.Membership()
}

// NewInvite returns an invitation code that is valid for the duration life, at most
// wire.MaxInviteLife. The code has this peer's addresses. Only a member with a lasting pass can
// make one.
func (d *DHT) NewInvite(life time.Duration) (string, error) {
	if d.handshaker == nil {
		return "", errors.New("new invite: the swarm is open: nobody needs one")
	}
	return newInvite(d.opts.Key, d.handshaker.OwnPass(), d.opts.Charter.Founder, d.space, d.Addrs(), life)
}

// InviteFrom is NewInvite for the peer with the directory dir. The peer may be running or not.
// addrs are its addresses with /p2p/ID.
func InviteFrom(dir string, addrs []string, life time.Duration) (string, error) {
	key, err := LoadIdentity(filepath.Join(dir, "identity.key"), false)
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(filepath.Join(dir, charterFile))
	if err != nil {
		return "", fmt.Errorf("new invite: the charter is not kept yet: %w", err)
	}
	var sealed wire.SealedCharter
	if err := proto.Unmarshal(b, &sealed); err != nil {
		return "", fmt.Errorf("new invite: %s: %w", charterFile, err)
	}
	c, err := sealed.Open()
	if err != nil {
		return "", fmt.Errorf("new invite: %w", err)
	}
	if !c.Private {
		return "", fmt.Errorf("new invite: the swarm %s is open: nobody needs one", c.Name)
	}
	pass := &wire.Pass{}
	// The founder needs no pass file.
	if c.Founder != PeerID(key) {
		if b, err = os.ReadFile(filepath.Join(dir, passFile)); err != nil {
			return "", fmt.Errorf("new invite: this peer has no lasting pass yet, let it run and join first: %w", err)
		}
		if pass, err = wire.ParsePass(b); err != nil {
			return "", fmt.Errorf("new invite: %w", err)
		}
	}
	return newInvite(key, pass, c.Founder, c.Digest(), addrs, life)
}

// newInvite makes an invitation code with a lasting pass. If the pass is not lasting, it is an error.
func newInvite(key crypto.PrivKey, pass *wire.Pass, founder, space string, addrs []string, life time.Duration) (string,
	error) {
	a, err := pass.Check(founder, space, PeerID(key), time.Now())
	if err == nil && !a.Lasting {
		err = errors.New("this peer has no lasting pass yet, let it join first")
	}
	if err != nil {
		return "", fmt.Errorf("new invite: %w", err)
	}
	inv, err := wire.NewInvite(key, pass, founder, space, addrs, time.Now(), life)
	if err != nil {
		return "", err
	}
	return inv.Code()
}
