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
	charterTimeout  = 10 * time.Second // for one question
)

// FetchCharter asks the join addresses, one after the other, for the charter of their swarm. It is
// for a peer that has no charter yet. The founder, whose id is in the charter, signs it.
// FetchCharter refuses a bad signature. listen may be nil, because no other peer needs to reach
// this one. A private swarm gives its charter only to a peer with a valid way in. If the way is not
// valid, the error wraps handshake.ErrRefused.
func FetchCharter(ctx context.Context, key crypto.PrivKey, listen, join []string, ways Ways) (partition.Charter,
	error) {
	if key == nil {
		return partition.Charter{}, errors.New("fetch charter: no key")
	}
	if len(join) == 0 {
		return partition.Charter{}, errors.New("fetch charter: no join address")
	}
	// This host exists only for the question. The peer itself starts later, with the charter.
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

// fetchCharter is FetchCharter with a host. It returns the first valid charter, or all errors joined.
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
		// A peer may have its own address among its join addresses.
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

// askCharter asks one peer, and checks the signature. It takes at most charterTimeout.
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
	// The other peer did not admit this one, so it told nothing else.
	if sealed.Private {
		return nil, fmt.Errorf("%w: it wants an invite or the swarm's key", handshake.ErrRefused)
	}
	if _, err := sealed.Open(); err != nil {
		return nil, err
	}
	return sealed, nil
}

// charterKeeper gives the charter of this peer's swarm to other peers.
type charterKeeper struct {
	opts       Options
	log        *slog.Logger
	self       peer.ID
	space      string // the charter's digest
	host       host.Host
	handshaker *handshake.Host // the same as host, in a private swarm; else nil
	zones      *zone.Zones
	life       *life.Life
	refused    *guard.Tally                       // counts refusals of a private swarm
	sealed     atomic.Pointer[wire.SealedCharter] // nil = not fetched yet
}

// serve answers with the signed charter. The answer is empty while this peer does not have the
// founder's signature. A peer without a handshake learns only that the swarm is private.
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
	// Outsiders of a private swarm do not get its charter.
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

// load makes the founder's signature of the charter, or reads it from Dir. If there is none, run
// asks other peers later. A damaged file is not an error.
func (k *charterKeeper) load() error {
	c := k.opts.Charter
	// Only the founder has the key that signs the charter.
	if c.Founder == k.self.String() {
		sealed, err := wire.SealCharter(c, k.opts.Key)
		if err != nil {
			return err
		}
		k.sealed.Store(sealed)
		k.save(sealed) // so that InviteFrom works while this peer is not running
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

// ours reports whether sealed has a valid signature and is the charter of this swarm.
func (k *charterKeeper) ours(sealed *wire.SealedCharter) bool {
	c, err := sealed.Open()
	return err == nil && c.Digest() == k.space
}

// run asks the members for the founder's signature until it has it. Then this peer can answer
// joining peers even if the founder is gone.
func (k *charterKeeper) run(ctx context.Context) {
	for wait := time.Second; k.sealed.Load() == nil; wait = min(2*wait, time.Minute) {
		// Any member may have the signature, not only the founder.
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

// save keeps the charter in Dir, if there is one.
func (k *charterKeeper) save(sealed *wire.SealedCharter) {
	if k.opts.Dir == "" {
		return
	}
	b, err := proto.Marshal(sealed)
	if err == nil {
		err = writeFile(filepath.Join(k.opts.Dir, charterFile), b)
	}
	if err != nil {
		k.log.Warn("keep the charter", "err", err) // this peer asks again after its next start
	}
}
