package node

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/dht/zone"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/node/geoplace"
	"github.com/echo-node/echo-node/node/placement"
	"github.com/echo-node/echo-node/node/quota"
	"github.com/echo-node/echo-node/node/replica"
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
	gate      *quota.Gate
	repairs   *replica.Repairs // nil while the peer is being opened, like dht
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
	if err := s.gate.Await(ctx, peer, req); err != nil {
		return nil, err
	}
	req.Version = partition.WireVersion
	req.View = binary.BigEndian.AppendUint64(nil, s.Members().Digest())
	resp, err := s.dht.Call(ctx, peer, req)
	if err != nil {
		return nil, err
	}
	if r := resp.GetRefusal(); r != nil {
		s.gate.Obey(peer, r)
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

// KnownOwner returns the owner of a slice of another zone, if a lookup has found it.
func (s *swarm) KnownOwner(sl partition.Slice) (zone.Owner, bool) { return s.dht.KnownOwner(sl) }

// ForgetOwner forgets that peer is the owner of a slice of another zone.
func (s *swarm) ForgetOwner(sl partition.Slice, peer string) { s.dht.ForgetOwner(sl, peer) }

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

// Partner reports whether a peer is a replica or the owner of some slice.
func (s *swarm) Partner(peer string) bool { return slices.Contains(s.quorum.Replicas(), peer) }

// Owner returns the owner of a slice by the agreement that this peer knows, or "".
func (s *swarm) Owner(sl partition.Slice) string { return s.quorum.Owner(sl) }

// Lacking reports whether a peer reports that its own copy of a slice is not whole.
func (s *swarm) Lacking(sl partition.Slice, peer string) bool { return s.repairs.Lacking(sl, peer) }

// Zones reports whether the swarm has zones.
func (s *swarm) Zones() bool { return s.charter.ZoneMax > 0 }

// Descriptor finds what a member of another zone has signed about itself.
func (s *swarm) Descriptor(ctx context.Context, peer string) (dht.Descriptor, error) {
	return s.dht.Descriptor(ctx, peer)
}

// Overrules reports whether the charter lets a peer overrule the judge of accounts, provided that
// the peer is a member.
func (s *swarm) Overrules(peer string) bool {
	return peer == s.charter.Founder || s.charter.MembersOverrule()
}
