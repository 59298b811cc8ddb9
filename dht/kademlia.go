package dht

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ipfs/go-cid"
	kad "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/routing"
	mh "github.com/multiformats/go-multihash"

	"github.com/echo-node/echo-node/dht/life"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/dht/zone"
	"github.com/echo-node/echo-node/partition"
)

const (
	namespace      = "echo"           // of this project's records in Kademlia
	peerKey        = "/echo/peer/"    // followed by a peer id
	descriptorLife = 2 * time.Hour    // time until a descriptor in Kademlia expires
	maxLife        = 48 * time.Hour   // no descriptor may expire later than this, and no record is kept longer
	republish      = 20 * time.Minute // time between two publications
	retryPublish   = 5 * time.Second  // the same after a failed one
	settle         = time.Second      // changes of the descriptor within this time are published together
	maxZone        = 512              // largest number of providers that FindZone looks at
	lookupTimeout  = 20 * time.Second // for one lookup in Kademlia
)

// directory publishes this peer in Kademlia, and finds other peers there.
type directory struct {
	log       *slog.Logger
	key       crypto.PrivKey
	self      peer.ID
	space     string // the charter's digest
	kad       *kad.IpfsDHT
	zones     *zone.Zones
	check     *validator
	published atomic.Uint64 // number of times that this peer stored its descriptor
}

// zoneKey returns the key of which the members of a zone are providers.
func (k *directory) zoneKey(z partition.Zone) (cid.Cid, error) {
	hash, err := mh.Sum([]byte("echo-node/zone/"+k.space+"/"+zone.Path(z)), mh.SHA2_256, -1)
	if err != nil {
		return cid.Undef, err
	}
	return cid.NewCidV1(cid.Raw, hash), nil
}

// validator checks records under /echo/ in Kademlia. Every peer uses it for the records that it is
// asked to store, and for those that it finds. Safe for concurrent use.
type validator struct {
	space                                     string
	forged, expired, malformed, oversize, old atomic.Uint64
}

// Validate implements record.Validator. It counts the reason of a refusal.
func (v *validator) Validate(key string, value []byte) error {
	_, err := v.open(key, value, time.Now())
	switch {
	case err == nil:
	case errors.Is(err, wire.ErrSignature):
		v.forged.Add(1)
	case errors.Is(err, wire.ErrExpired):
		v.expired.Add(1)
	case errors.Is(err, wire.ErrTooLarge):
		v.oversize.Add(1)
	default:
		v.malformed.Add(1)
	}
	return err
}

// open returns the descriptor in a record, if the record is valid at the time now. Its expiry must
// be at most maxLife away.
func (v *validator) open(key string, value []byte, now time.Time) (Descriptor, error) {
	id, ok := strings.CutPrefix(key, peerKey)
	if !ok {
		return Descriptor{}, fmt.Errorf("record %.64q: %w", key, wire.ErrMalformed)
	}
	// Each peer has only one key: other texts of the same id are refused.
	if p, err := peer.Decode(id); err != nil || p.String() != id {
		return Descriptor{}, fmt.Errorf("record %.64q: not a peer id: %w", key, wire.ErrMalformed)
	}
	desc, err := wire.OpenDescriptor(id, v.space, value, now)
	if err != nil {
		return Descriptor{}, err
	}
	// Otherwise a descriptor could stay in Kademlia long after its peer is gone.
	if desc.Expires.IsZero() || desc.Expires.After(now.Add(maxLife)) {
		return Descriptor{}, fmt.Errorf("descriptor of %s: no expiry within %s: %w", id, maxLife, wire.ErrMalformed)
	}
	return desc, nil
}

// Select implements record.Validator. It returns the index of the valid value with the highest
// sequence, the first of equal ones.
func (v *validator) Select(key string, values [][]byte) (int, error) {
	best, highest := -1, uint64(0)
	for i, value := range values {
		desc, err := v.open(key, value, time.Now())
		if err != nil {
			continue
		}
		if best < 0 || desc.Sequence > highest {
			// The one that was best so far is older.
			if best >= 0 {
				v.old.Add(1)
			}
			best, highest = i, desc.Sequence
		} else if desc.Sequence < highest {
			v.old.Add(1)
		}
	}
	if best < 0 {
		return 0, fmt.Errorf("record %.64q: no valid value", key)
	}
	return best, nil
}

// run publishes this peer's descriptor and provider record again and again, so that they do not
// expire. It also does so after a change of the descriptor.
func (k *directory) run(ctx context.Context) {
	for {
		wait := republish
		if k.kad.RoutingTable().Size() == 0 {
			wait = time.Second // there is nobody to publish to yet
		} else if err := k.publish(ctx); err != nil {
			k.log.Debug("publish the own descriptor", "err", err)
			wait = retryPublish
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		// Several changes often come together, so wait a moment for the others.
		case <-k.zones.Changed():
			timer.Stop()
			if !life.Sleep(ctx, settle) {
				return
			}
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// publish stores the descriptor, with the present time as its sequence, and announces this peer as
// a provider of its zone.
func (k *directory) publish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	now := time.Now()
	// The sequence is the clock in milliseconds, as in the gossip. So a later run of this peer has
	// a higher one.
	desc := Descriptor{Member: k.zones.Self(), Sequence: uint64(now.UnixMilli()), Expires: now.Add(descriptorLife)}
	sealed, err := desc.Seal(k.key, k.space, wire.MaxDescriptor)
	if err != nil {
		return err
	}
	if err := k.kad.PutValue(ctx, peerKey+k.self.String(), sealed); err != nil {
		return fmt.Errorf("put descriptor: %w", err)
	}
	key, err := k.zoneKey(k.zones.Zone())
	if err != nil {
		return err
	}
	if err := k.kad.Provide(ctx, key, true); err != nil {
		return fmt.Errorf("provide zone: %w", err)
	}
	k.published.Add(1)
	return nil
}

// find implements DHT.FindZone.
func (k *directory) find(ctx context.Context, z partition.Zone) ([]Descriptor, error) {
	key, err := k.zoneKey(z)
	if err != nil {
		return nil, fmt.Errorf("find zone: %w", err)
	}
	var out []Descriptor
	var errs []error
	for info := range k.kad.FindProvidersAsync(ctx, key, maxZone) {
		// One slow look-up must not use the time of the others.
		one, cancel := context.WithTimeout(ctx, lookupTimeout)
		desc, err := k.descriptor(one, info.ID.String())
		cancel()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, desc)
	}
	if err := ctx.Err(); err != nil {
		return out, fmt.Errorf("find zone: %w", err)
	}
	// Some descriptors may be missing. It is an error only if all are.
	if len(out) == 0 && len(errs) > 0 {
		return nil, fmt.Errorf("find zone: %w", errors.Join(errs...))
	}
	return out, nil
}

// descriptor implements DHT.Descriptor.
func (k *directory) descriptor(ctx context.Context, peerID string) (Descriptor, error) {
	value, err := k.kad.GetValue(ctx, peerKey+peerID)
	if errors.Is(err, routing.ErrNotFound) {
		return Descriptor{}, fmt.Errorf("descriptor of %s: %w", peerID, ErrNoPeer)
	}
	if err != nil {
		return Descriptor{}, fmt.Errorf("descriptor of %s: %w", peerID, err)
	}
	return k.check.open(peerKey+peerID, value, time.Now())
}
