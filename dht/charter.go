package dht

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

const (
	charterProtocol = "/echo-node/charter/1"
	charterFile     = "charter.sealed"
	charterTimeout  = 10 * time.Second // of one question
)

// FetchCharter asks the join addresses, one after the other, which charter
// their swarm has, for a peer that has none yet. The charter is signed by its
// founder, whose id is in it; a bad signature is refused. listen may be nil:
// nothing needs to reach this peer. A private swarm tells its charter only to
// one who has a way in; the error wraps ErrNotAdmitted when it is not good.
func FetchCharter(ctx context.Context, key crypto.PrivKey, listen, join []string, ways Ways) (partition.Charter,
	error) {
	if key == nil {
		return partition.Charter{}, errors.New("fetch charter: no key")
	}
	if len(join) == 0 {
		return partition.Charter{}, errors.New("fetch charter: no join address")
	}
	h, err := newHost(Options{Key: key, Version: "joining"}, listen, nil, nil)
	if err != nil {
		return partition.Charter{}, fmt.Errorf("fetch charter: %w", err)
	}
	c, err := fetchCharter(ctx, h, key, join, ways)
	if err = errors.Join(err, h.Close()); err != nil {
		return partition.Charter{}, fmt.Errorf("fetch charter: %w", err)
	}
	return c, nil
}

func fetchCharter(ctx context.Context, h host.Host, key crypto.PrivKey, join []string, ways Ways) (partition.Charter,
	error) {
	handshaker, err := ways.handshaker(ctx, h, key)
	if err != nil {
		return partition.Charter{}, err
	}
	if handshaker != nil {
		defer handshaker.close()
		h = handshaker
	}
	infos, err := resolveJoin(ctx, join)
	errs := []error{err}
	for _, info := range infos {
		if info.ID == h.ID() {
			continue
		}
		sealed, err := askCharter(ctx, h, info)
		if err == nil {
			return ways.open(sealed)
		}
		errs = append(errs, fmt.Errorf("%s: %w", info.ID, err))
	}
	if err := errors.Join(errs...); err != nil {
		return partition.Charter{}, err
	}
	return partition.Charter{}, errors.New("the join addresses name nobody but this peer")
}

// askCharter asks one peer, and checks the signature.
func askCharter(ctx context.Context, h host.Host, info peer.AddrInfo) (*wire.SealedCharter, error) {
	ctx, cancel := context.WithTimeout(ctx, charterTimeout)
	defer cancel()
	if err := h.Connect(ctx, info); err != nil {
		return nil, err
	}
	s, err := h.NewStream(ctx, info.ID, charterProtocol)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = s.Reset() })()
	defer func() { _ = s.Reset() }() // nothing more is expected
	sealed, err := wire.ReadCharter(s)
	if err != nil {
		return nil, err
	}
	if sealed.Private {
		return nil, fmt.Errorf("%w: it wants an invite or the swarm's key", ErrHandshake)
	}
	if _, err := sealed.Open(); err != nil {
		return nil, err
	}
	return sealed, nil
}

// serveCharter answers with the charter, unsigned while this peer has not
// fetched the founder's signature.
func (d *DHT) serveCharter(s network.Stream) {
	if !d.begin() {
		_ = s.Reset()
		return
	}
	defer d.running.Done()
	sealed := d.sealed.Load()
	if sealed == nil {
		sealed = &wire.SealedCharter{}
	}
	if d.handshaker != nil && !d.handshaker.passed(s.Conn()) {
		d.counters.handshakeFailed.add("stranger")
		sealed = &wire.SealedCharter{Private: true}
	}
	late := time.AfterFunc(charterTimeout, func() { _ = s.Reset() })
	defer late.Stop()
	if err := wire.WriteCharter(s, sealed); err != nil {
		_ = s.Reset()
		return
	}
	_ = s.Close()
}

// loadCharter makes or finds the founder's signature of our charter. Without
// one, keepCharter asks others later.
func (d *DHT) loadCharter() error {
	c := d.opts.Charter
	if c.Founder == d.self.String() {
		sealed, err := wire.SealCharter(c, d.opts.Key)
		if err != nil {
			return err
		}
		d.sealed.Store(sealed)
		d.saveCharter(sealed) // for who makes invites while this peer is down
		return nil
	}
	if d.opts.Dir == "" {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(d.opts.Dir, charterFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read charter: %w", err)
	}
	var sealed wire.SealedCharter
	if err := proto.Unmarshal(b, &sealed); err != nil || !d.ours(&sealed) {
		d.log.Warn("the kept charter is damaged or of another swarm, asking again", "file", charterFile)
		return nil
	}
	d.sealed.Store(&sealed)
	return nil
}

func (d *DHT) ours(sealed *wire.SealedCharter) bool {
	c, err := sealed.Open()
	return err == nil && c.Digest() == d.space
}

// keepCharter asks the members for the founder's signature until it has it, so
// that this peer can answer joiners when the founder is gone.
func (d *DHT) keepCharter(ctx context.Context) {
	for wait := time.Second; d.sealed.Load() == nil; wait = min(2*wait, time.Minute) {
		for _, m := range d.View().Members() {
			p, err := peer.Decode(m.ID)
			if err != nil || p == d.self {
				continue
			}
			sealed, err := askCharter(ctx, d.host, peer.AddrInfo{ID: p})
			if err == nil && d.ours(sealed) {
				d.sealed.Store(sealed)
				d.saveCharter(sealed)
				return
			}
		}
		if !sleep(ctx, wait) {
			return
		}
	}
}

func (d *DHT) saveCharter(sealed *wire.SealedCharter) {
	if d.opts.Dir == "" {
		return
	}
	b, err := proto.Marshal(sealed)
	if err == nil {
		err = writeFile(filepath.Join(d.opts.Dir, charterFile), b)
	}
	if err != nil {
		d.log.Warn("keep the charter", "err", err) // asked again after the next start
	}
}
