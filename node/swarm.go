package node

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/dht/zone"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/node/geoplace"
	"github.com/echo-node/echo-node/node/placement"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/db"
)

// swarm is how the parts of this peer know and call the other peers.
type swarm struct {
	id        string // this peer
	charter   partition.Charter
	store     *db.Store
	quorum    *quorum.Machine
	placer    *geoplace.Placer // nil in hash mode
	placement *placement.Placement
	credit    *creditGate
	dht       *dht.DHT
}

// Call sends a request to a peer, with this peer's View digest and a deadline. If the member has
// vanished, it returns an error at once.
func (s *swarm) Call(ctx context.Context, peer string, req *wire.Request) (*wire.Response, error) {
	if s.placement.Vanished(peer) {
		return nil, fmt.Errorf("%s: %w", peer, call.ErrVanished)
	}
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	if err := s.awaitCredit(ctx, peer, req); err != nil {
		return nil, err
	}
	req.Version = partition.WireVersion
	req.View = binary.BigEndian.AppendUint64(nil, s.Members().Digest())
	resp, err := s.dht.Call(ctx, peer, req)
	if err != nil {
		return nil, err
	}
	if r := resp.GetRefusal(); r != nil {
		s.credit.obey(peer, r, time.Now())
		return nil, &call.Refusal{Code: r.Code, Reason: r.Reason,
			After: time.Duration(r.RetryAfterMs) * time.Millisecond}
	}
	return resp, nil
}

// Members returns the live members, and those that vanished and are still expected back.
func (s *swarm) Members() partition.View {
	_, view := s.placement.Views()
	return view
}

// Alive reports whether a peer is a live member.
func (s *swarm) Alive(peer string) bool { return s.placement.Alive(peer) }

// Vanished returns since when a peer is gone, if it is still expected back.
func (s *swarm) Vanished(peer string) (since time.Time, ok bool) {
	for _, g := range s.placement.Absent() {
		if g.Member.ID == peer {
			return g.Since, true
		}
	}
	return time.Time{}, false
}

// Zone returns this peer's own zone.
func (s *swarm) Zone() partition.Zone { return s.dht.Zone() }

// FindOwner looks up the owner of a slice of another zone.
func (s *swarm) FindOwner(ctx context.Context, sl partition.Slice) (zone.Owner, error) {
	return s.dht.FindOwner(ctx, sl)
}

// Foreign reports whether sl belongs to another zone, and this peer does not still own it.
func (s *swarm) Foreign(sl partition.Slice) bool {
	if s.charter.ZoneMax == 0 {
		return false
	}
	return outside(sl, s.dht.Zone()) && s.quorum.Owner(sl) != s.id
}

// SliceFrom decodes a slice that another peer encoded with call.SliceOn. It returns an error if k
// cannot be in that slice.
func (s *swarm) SliceFrom(v uint64, k partition.Key) (partition.Slice, error) {
	if v == 0 {
		return s.store.SliceOf(k), nil
	}
	sl := partition.Slice(v)
	if s.placer == nil || !s.placer.Has(sl) || !s.charter.MayHold(sl, k) {
		return 0, fmt.Errorf("%.80q is said to be in %s", k, sl)
	}
	return sl, nil
}

// awaitCredit waits out a short pause that peer has asked for. For a longer pause it returns a
// refusal without a request.
func (s *swarm) awaitCredit(ctx context.Context, peer string, req *wire.Request) error {
	const worth = 500 * time.Millisecond
	if priority(req) {
		return nil
	}
	wait := s.credit.pause(peer, time.Now())
	if wait <= 0 {
		return nil
	}
	if wait > worth {
		return call.Busy("it has asked this peer to wait", wait)
	}
	if !call.Sleep(ctx, wait, nil) {
		return ctx.Err()
	}
	return nil
}
