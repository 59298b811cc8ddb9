package wire

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	"google.golang.org/protobuf/proto"

	"github.com/echo-node/echo-node/partition"
)

// Bounds of the values in a descriptor. Opening a descriptor clamps to them.
const (
	MinCapacity = 1
	MaxCapacity = 16
	MaxLoadStep = 16
)

// The domain is the beginning of every signed descriptor. See signed.
const (
	sigLen           = 64 // Ed25519
	descriptorDomain = "echo-node/descriptor/1\n"
)

// Descriptor is what a peer declares about itself. A sealed descriptor is, byte by byte:
//
//	64 bytes  Ed25519 signature by the peer's key over
//	          "echo-node/descriptor/1\n", the swarm's name space, "\n", and the rest
//	n bytes   protobuf PeerDescriptor
//
// It does not contain the peer's id, which is the name under which the descriptor is found. An
// Ed25519 id contains the key that checks the signature.
type Descriptor struct {
	Member   partition.Member
	Sequence uint64    // the highest wins
	Expires  time.Time // zero = never; the DHT does not accept such a descriptor
	Leaving  bool      // the peer says goodbye: it is no longer a member
}

// Seal signs d for the swarm with the given name space (the digest of its charter). If the
// addresses do not fit into limit bytes, it leaves out the last ones.
func (d Descriptor) Seal(key crypto.PrivKey, space string, limit int) ([]byte, error) {
	pb, err := d.toProto()
	if err != nil {
		return nil, fmt.Errorf("seal descriptor: %w", err)
	}
	for {
		body, err := proto.MarshalOptions{Deterministic: true}.Marshal(pb)
		if err != nil {
			return nil, fmt.Errorf("seal descriptor: %w", err)
		}
		// The caller puts the most useful addresses first.
		if sigLen+len(body) > limit && len(pb.Addrs) > 0 {
			pb.Addrs = pb.Addrs[:len(pb.Addrs)-1]
			continue
		}
		if sigLen+len(body) > limit {
			return nil, fmt.Errorf("seal descriptor: %w", over("descriptor", sigLen+len(body), limit))
		}
		sig, err := key.Sign(signed(descriptorDomain, space, body))
		if err != nil {
			return nil, fmt.Errorf("seal descriptor: %w", err)
		}
		if len(sig) != sigLen {
			return nil, errors.New("seal descriptor: the key is not Ed25519")
		}
		return append(sig, body...), nil
	}
}

// OpenDescriptor checks and decodes a sealed descriptor of the peer id. The caller passes the
// time; with a zero now the expiry is not checked.
func OpenDescriptor(id, space string, sealed []byte, now time.Time) (Descriptor, error) {
	d, err := openDescriptor(id, space, sealed)
	if err != nil {
		return Descriptor{}, fmt.Errorf("descriptor of %.64q: %w", id, err)
	}
	if !now.IsZero() && !d.Expires.IsZero() && now.After(d.Expires) {
		return Descriptor{}, fmt.Errorf("descriptor of %.64q: %w at %s", id, ErrExpired,
			d.Expires.UTC().Format(time.RFC3339))
	}
	return d, nil
}

// openDescriptor is OpenDescriptor without the check of the expiry.
func openDescriptor(id, space string, sealed []byte) (Descriptor, error) {
	if len(sealed) > MaxDescriptor {
		return Descriptor{}, over("descriptor", len(sealed), MaxDescriptor)
	}
	if len(sealed) < sigLen {
		return Descriptor{}, fmt.Errorf("%d bytes: %w", len(sealed), ErrMalformed)
	}
	body := sealed[sigLen:]
	// The signature comes first, so that only bytes from the peer itself are decoded.
	if err := verify(id, sealed[:sigLen], signed(descriptorDomain, space, body)); err != nil {
		return Descriptor{}, err
	}
	var pb PeerDescriptor
	if err := scan(body, pb.ProtoReflect().Descriptor()); err != nil {
		return Descriptor{}, err
	}
	if err := proto.Unmarshal(body, &pb); err != nil {
		return Descriptor{}, fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	return fromProto(id, &pb)
}

// verify checks sig with the key in the peer id.
func verify(id string, sig, data []byte) error {
	pid, err := peer.Decode(id)
	if err != nil {
		return fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	if pid.String() != id {
		// each peer has only one name
		return fmt.Errorf("%w: a peer id in another form", ErrMalformed)
	}
	pub, err := pid.ExtractPublicKey()
	if err != nil {
		return fmt.Errorf("%w: %v", ErrSignature, err)
	}
	if pub.Type() != crypto.Ed25519 {
		return fmt.Errorf("%w: not an Ed25519 key", ErrSignature)
	}
	if ok, err := pub.Verify(data, sig); err != nil || !ok {
		return ErrSignature
	}
	return nil
}

// signed returns the bytes that are signed: the domain, which names the purpose, the name space, a
// newline, and the body.
func signed(domain, space string, body []byte) []byte {
	b := make([]byte, 0, len(domain)+len(space)+1+len(body))
	b = append(b, domain...)
	b = append(b, space...)
	b = append(b, '\n')
	return append(b, body...)
}

// toProto encodes d. It clamps numbers to their bounds and leaves out addresses beyond MaxAddrs or
// longer than MaxAddr.
func (d Descriptor) toProto() (*PeerDescriptor, error) {
	m := d.Member
	pb := &PeerDescriptor{Sequence: d.Sequence, Version: m.Version, Leaving: d.Leaving,
		Capacity:  uint32(clamp(m.Capacity, MinCapacity, MaxCapacity)),
		LoadStep:  uint32(clamp(m.LoadStep, 0, MaxLoadStep)),
		ZoneDepth: uint32(clamp(m.ZoneDepth, 0, partition.MaxZoneDepth)), ZoneFree: m.ZoneFree}
	if len(m.Version) > MaxVersion {
		return nil, over("version", len(m.Version), MaxVersion)
	}
	if !d.Expires.IsZero() {
		pb.ExpiresMs = d.Expires.UnixMilli()
	}
	if m.Location != nil {
		p, err := pointToProto(*m.Location)
		if err != nil {
			return nil, err
		}
		pb.Location = p
	}
	for _, a := range m.Addrs {
		addr, err := ma.NewMultiaddr(a)
		if err != nil {
			return nil, fmt.Errorf("address %.128q: %w", a, err)
		}
		// One address that does not fit must not prevent the others.
		if b := addr.Bytes(); len(b) <= MaxAddr && len(pb.Addrs) < MaxAddrs {
			pb.Addrs = append(pb.Addrs, b)
		}
	}
	return pb, nil
}

// fromProto decodes a descriptor of the peer id. It clamps numbers to their bounds.
func fromProto(id string, pb *PeerDescriptor) (Descriptor, error) {
	if len(pb.Version) > MaxVersion {
		return Descriptor{}, over("version", len(pb.Version), MaxVersion)
	}
	d := Descriptor{Sequence: pb.Sequence, Leaving: pb.Leaving, Member: partition.Member{ID: id, Version: pb.Version,
		Capacity:  clamp(int(min(pb.Capacity, math.MaxInt32)), MinCapacity, MaxCapacity),
		LoadStep:  clamp(int(min(pb.LoadStep, math.MaxInt32)), 0, MaxLoadStep),
		ZoneDepth: clamp(int(min(pb.ZoneDepth, math.MaxInt32)), 0, partition.MaxZoneDepth), ZoneFree: pb.ZoneFree}}
	if pb.ExpiresMs != 0 {
		d.Expires = time.UnixMilli(pb.ExpiresMs)
	}
	if l := pb.Location; l != nil {
		p, err := pointFromProto(l)
		if err != nil {
			return Descriptor{}, err
		}
		d.Member.Location = &p
	}
	for _, b := range pb.Addrs {
		if len(b) > MaxAddr {
			return Descriptor{}, over("address", len(b), MaxAddr)
		}
		addr, err := ma.NewMultiaddrBytes(b)
		if err != nil {
			return Descriptor{}, fmt.Errorf("address: %w: %v", ErrMalformed, err)
		}
		d.Member.Addrs = append(d.Member.Addrs, addr.String())
	}
	return d, nil
}

// degrees are sent as whole numbers of 1e-7 degrees
const e7 = 1e7

// pointToProto rounds p to 1e-7 degrees, which is about one centimetre. It refuses NaN and points
// outside the globe.
func pointToProto(p partition.Point) (*GeoPoint, error) {
	if !(p.Lat >= -90 && p.Lat <= 90 && p.Lon >= -180 && p.Lon <= 180) { // false for NaN too
		return nil, fmt.Errorf("location %v, %v is not on the globe", p.Lat, p.Lon)
	}
	return &GeoPoint{LatE7: int32(math.Round(p.Lat * e7)), LonE7: int32(math.Round(p.Lon * e7))}, nil
}

// pointFromProto refuses points outside the globe.
func pointFromProto(g *GeoPoint) (partition.Point, error) {
	if g.LatE7 < -90*e7 || g.LatE7 > 90*e7 || g.LonE7 < -180*e7 || g.LonE7 > 180*e7 {
		return partition.Point{}, fmt.Errorf("location %d, %d is not on the globe: %w", g.LatE7, g.LonE7, ErrMalformed)
	}
	return partition.Point{Lat: float64(g.LatE7) / e7, Lon: float64(g.LonE7) / e7}, nil
}

// clamp returns n, or the nearest bound.
func clamp(n, lo, hi int) int { return max(lo, min(n, hi)) }
