package dht

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"github.com/echo-node/echo-node/dht/guard"
	"github.com/echo-node/echo-node/dht/handshake"
	"github.com/echo-node/echo-node/dht/life"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/dht/zone"
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
// one who has a way in; the error wraps handshake.ErrRefused when it is not good.
func FetchCharter(ctx context.Context, key crypto.PrivKey, listen, join []string, ways Ways) (partition.Charter,
	error) {
	if key == nil {
		return partition.Charter{}, errors.New("fetch charter: no key")
	}
	if len(join) == 0 {
		return partition.Charter{}, errors.New("fetch charter: no join address")
	}
	h, err := newHost(Options{Key: key, Version: "joining"}, listen, nil)
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
		defer handshaker.Stop()
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
	return partition.Charter{}, errors.New("the join addresses name only this peer")
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
		return nil, fmt.Errorf("%w: it wants an invite or the swarm's key", handshake.ErrRefused)
	}
	if _, err := sealed.Open(); err != nil {
		return nil, err
	}
	return sealed, nil
}

// charterKeeper tells others the charter of this peer's swarm.
type charterKeeper struct {
	opts       Options
	log        *slog.Logger
	self       peer.ID
	space      string // the charter's digest
	host       host.Host
	handshaker *handshake.Host // host, in a private swarm; else nil
	zones      *zone.Zones
	life       *life.Life
	refused    *guard.Tally // by a private swarm
	sealed     atomic.Pointer[wire.SealedCharter]
}

// serve answers with the charter, unsigned while this peer has not
// fetched the founder's signature.
func (k *charterKeeper) serve(s network.Stream) {
	if !k.life.Begin() {
		_ = s.Reset()
		return
	}
	defer k.life.End()
	sealed := k.sealed.Load()
	if sealed == nil {
		sealed = &wire.SealedCharter{}
	}
	if k.handshaker != nil && !k.handshaker.Passed(s.Conn()) {
		k.refused.Add("stranger")
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

// load makes or finds the founder's signature of our charter. Without
// one, run asks others later.
func (k *charterKeeper) load() error {
	c := k.opts.Charter
	if c.Founder == k.self.String() {
		sealed, err := wire.SealCharter(c, k.opts.Key)
		if err != nil {
			return err
		}
		k.sealed.Store(sealed)
		k.save(sealed) // for who makes invites while this peer is down
		return nil
	}
	if k.opts.Dir == "" {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(k.opts.Dir, charterFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read charter: %w", err)
	}
	var sealed wire.SealedCharter
	if err := proto.Unmarshal(b, &sealed); err != nil || !k.ours(&sealed) {
		k.log.Warn("the kept charter is damaged or of another swarm, asking again", "file", charterFile)
		return nil
	}
	k.sealed.Store(&sealed)
	return nil
}

func (k *charterKeeper) ours(sealed *wire.SealedCharter) bool {
	c, err := sealed.Open()
	return err == nil && c.Digest() == k.space
}

// run asks the members for the founder's signature until it has it, so
// that this peer can answer joiners when the founder is gone.
func (k *charterKeeper) run(ctx context.Context) {
	for wait := time.Second; k.sealed.Load() == nil; wait = min(2*wait, time.Minute) {
		for _, m := range k.zones.View().Members() {
			p, err := peer.Decode(m.ID)
			if err != nil || p == k.self {
				continue
			}
			sealed, err := askCharter(ctx, k.host, peer.AddrInfo{ID: p})
			if err == nil && k.ours(sealed) {
				k.sealed.Store(sealed)
				k.save(sealed)
				return
			}
		}
		if !life.Sleep(ctx, wait) {
			return
		}
	}
}

func (k *charterKeeper) save(sealed *wire.SealedCharter) {
	if k.opts.Dir == "" {
		return
	}
	b, err := proto.Marshal(sealed)
	if err == nil {
		err = writeFile(filepath.Join(k.opts.Dir, charterFile), b)
	}
	if err != nil {
		k.log.Warn("keep the charter", "err", err) // asked again after the next start
	}
}
