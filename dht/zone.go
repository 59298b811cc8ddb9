package dht

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/routing"
	mh "github.com/multiformats/go-multihash"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

const (
	namespace     = "echo"        // of this project's records in Kademlia
	peerKey       = "/echo/peer/" // + peer id
	life          = 2 * time.Hour // of a descriptor
	maxLife       = 48 * time.Hour
	republish     = 20 * time.Minute
	retryPublish  = 5 * time.Second
	settle        = time.Second // changes of the descriptor are gathered so long
	maxZone       = 512         // providers looked at by FindZone
	lookupTimeout = 20 * time.Second
)

// zoneKey is the name under which the members of a zone provide.
func (d *DHT) zoneKey(zone partition.Zone) (cid.Cid, error) {
	hash, err := mh.Sum([]byte("echo-node/zone/"+d.space+"/"+zonePath(zone)), mh.SHA2_256, -1)
	if err != nil {
		return cid.Undef, err
	}
	return cid.NewCidV1(cid.Raw, hash), nil
}

// validator is the judge of records under /echo/ in Kademlia. Every peer runs
// it on what it is asked to store and on what it finds.
type validator struct {
	space                                     string
	forged, expired, malformed, oversize, old atomic.Uint64
}

// Validate is record.Validator's.
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

func (v *validator) open(key string, value []byte, now time.Time) (Descriptor, error) {
	id, ok := strings.CutPrefix(key, peerKey)
	if !ok {
		return Descriptor{}, fmt.Errorf("record %.64q: %w", key, wire.ErrMalformed)
	}
	if p, err := peer.Decode(id); err != nil || p.String() != id {
		return Descriptor{}, fmt.Errorf("record %.64q: not a peer id: %w", key, wire.ErrMalformed)
	}
	desc, err := wire.OpenDescriptor(id, v.space, value, now)
	if err != nil {
		return Descriptor{}, err
	}
	if desc.Expires.IsZero() || desc.Expires.After(now.Add(maxLife)) {
		return Descriptor{}, fmt.Errorf("descriptor of %s: no expiry within %s: %w", id, maxLife, wire.ErrMalformed)
	}
	return desc, nil
}

// Select is record.Validator's: the highest sequence, the first of equals.
func (v *validator) Select(key string, values [][]byte) (int, error) {
	best, highest := -1, uint64(0)
	for i, value := range values {
		desc, err := v.open(key, value, time.Now())
		if err != nil {
			continue
		}
		if best < 0 || desc.Sequence > highest {
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

// publishLoop keeps the descriptor and the provider record alive in Kademlia.
func (d *DHT) publishLoop(ctx context.Context) {
	for {
		wait := republish
		if d.kad.RoutingTable().Size() == 0 {
			wait = time.Second // nobody to publish to yet
		} else if err := d.publish(ctx); err != nil {
			d.log.Debug("publish the own descriptor", "err", err)
			wait = retryPublish
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-d.changed:
			timer.Stop()
			if !sleep(ctx, settle) {
				return
			}
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

func (d *DHT) publish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	now := time.Now()
	desc := Descriptor{Member: d.describe(), Sequence: uint64(now.UnixMilli()), Expires: now.Add(life)}
	sealed, err := desc.Seal(d.opts.Key, d.space, wire.MaxDescriptor)
	if err != nil {
		return err
	}
	if err := d.kad.PutValue(ctx, peerKey+d.ID(), sealed); err != nil {
		return fmt.Errorf("put descriptor: %w", err)
	}
	key, err := d.zoneKey(d.Zone())
	if err != nil {
		return err
	}
	if err := d.kad.Provide(ctx, key, true); err != nil {
		return fmt.Errorf("provide zone: %w", err)
	}
	d.counters.published.Add(1)
	return nil
}

// FindZone asks Kademlia for the members of a zone, as a stranger would, and
// returns those whose descriptor could be fetched and is good, in no order. It is
// not the View: it may name peers that died within the last hours.
func (d *DHT) FindZone(ctx context.Context, zone partition.Zone) ([]Descriptor, error) {
	key, err := d.zoneKey(zone)
	if err != nil {
		return nil, fmt.Errorf("find zone: %w", err)
	}
	var out []Descriptor
	var errs []error
	for info := range d.kad.FindProvidersAsync(ctx, key, maxZone) {
		one, cancel := context.WithTimeout(ctx, lookupTimeout)
		desc, err := d.Descriptor(one, info.ID.String())
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
	if len(out) == 0 && len(errs) > 0 {
		return nil, fmt.Errorf("find zone: %w", errors.Join(errs...))
	}
	return out, nil
}

// Descriptor finds what a peer says of itself in Kademlia: the one with the
// highest sequence among those found.
func (d *DHT) Descriptor(ctx context.Context, peerID string) (Descriptor, error) {
	value, err := d.kad.GetValue(ctx, peerKey+peerID)
	if errors.Is(err, routing.ErrNotFound) {
		return Descriptor{}, fmt.Errorf("descriptor of %s: %w", peerID, ErrNoPeer)
	}
	if err != nil {
		return Descriptor{}, fmt.Errorf("descriptor of %s: %w", peerID, err)
	}
	return d.check.open(peerKey+peerID, value, time.Now())
}
