package forward

import (
	"fmt"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// admissionOf checks a link of another peer and converts it.
func (r *Registrar) admissionOf(l *wire.Link) (store.Admission, error) {
	k, err := partition.KeyFromWire(l.Key)
	if err != nil {
		return store.Admission{}, err
	}
	var ref partition.Key
	if l.Referrer != "" {
		if ref, err = partition.KeyFromWire(l.Referrer); err != nil {
			return store.Admission{}, fmt.Errorf("referrer: %w", err)
		}
	}
	a := store.Admission{Key: k, Referrer: ref, Depth: int(min(l.Depth, 1<<16)), Priority: int(min(l.Priority, 255)),
		Seed: l.Seed, From: partition.Slice(l.From)}
	if a.Hint = store.ParseHint(uint64(l.Hint), l.ChangedUnix); a.Hint.Kind != 0 && ref.Site() != k.Site() {
		a.Hint.Kind = store.HintElsewhere // only a site is believed about its own pages
	}
	if l.Slice != 0 {
		if a.In, err = r.o.Peers.SliceFrom(l.Slice, k); err != nil {
			return store.Admission{}, err
		}
		a.Pace, a.Gen = paceOf(l.Pace)
	}
	return a, nil
}

// linkOf converts an Admission to its form in a message.
func linkOf(a store.Admission) *wire.Link {
	l := &wire.Link{Key: string(a.Key), Referrer: string(a.Referrer), Depth: uint32(a.Depth),
		Priority: uint32(a.Priority), Seed: a.Seed,
		Slice: uint64(a.In), From: uint64(a.From), Pace: wirePace(a)}
	if a.Hint.Kind != 0 {
		l.Hint, l.ChangedUnix = uint32(a.Hint.Kind), a.Hint.At.Unix()
	}
	return l
}

// paceOf converts a Pace from its form in a message.
func paceOf(p *wire.Pace) (pace store.Pace, gen uint64) {
	ms := func(v uint64) time.Duration {
		return time.Duration(min(v, uint64(24*time.Hour/time.Millisecond))) * time.Millisecond
	}
	pace = store.Pace{Wait: ms(p.GetWaitMs()), BackOff: ms(p.GetBackOffMs()),
		Fetched: int64(min(p.GetFetched(), 1<<40))}
	if p.GetNextMs() > 0 {
		pace.Next = time.UnixMilli(p.GetNextMs()).UTC()
	}
	return pace, min(p.GetGen(), store.MaxGen)
}

// wirePace converts the Pace of an item to its form in a message, or returns nil for a hash slice.
func wirePace(a store.Admission) *wire.Pace {
	if a.In == 0 {
		return nil
	}
	w := &wire.Pace{Gen: a.Gen, WaitMs: uint64(a.Pace.Wait / time.Millisecond),
		BackOffMs: uint64(a.Pace.BackOff / time.Millisecond), Fetched: uint64(max(a.Pace.Fetched, 0))}
	if !a.Pace.Next.IsZero() {
		w.NextMs = a.Pace.Next.UnixMilli()
	}
	return w
}
