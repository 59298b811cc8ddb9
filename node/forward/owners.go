package forward

import (
	"context"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Limits of the lookups of owners in other zones.
const (
	lookupQueue   = 1024 // slices whose owner is wanted; further ones are requested again
	lookupWorkers = 8
)

// OwnerOf returns the peer to which links of s go. It returns "" while the peer is not known, and
// starts a lookup. It does not wait.
func (f *Forwarder) OwnerOf(s partition.Slice) string {
	if !f.o.Peers.Foreign(s) {
		return f.o.Quorum.Owner(s)
	}
	if o, ok := f.o.Peers.KnownOwner(s); ok {
		return o.ID()
	}
	select {
	case f.lookup <- s:
	default: // the row stays in the outbox and requests it again
	}
	return ""
}

// RunLookups looks up owners in other zones until ctx ends.
func (f *Forwarder) RunLookups(ctx context.Context) error {
	done := make(chan struct{})
	for range lookupWorkers {
		go func() {
			defer func() { done <- struct{}{} }()
			for {
				select {
				case <-ctx.Done():
					return
				case s := <-f.lookup:
					if _, err := f.o.Peers.FindOwner(ctx, s); err == nil {
						f.Notify()
					} else if ctx.Err() == nil {
						f.o.Logger.Debug("owner in another zone", "slice", s.String(), "err", err)
					}
				}
			}
		}()
	}
	for range lookupWorkers {
		<-done
	}
	return ctx.Err()
}

// doubt forgets owner as the owner of the slices of batch that it did not answer for, or answered
// with not-owner. answers is nil if there was no response.
func (f *Forwarder) doubt(owner string, batch []store.OutboxRow, answers []Verdict) {
	for i, r := range batch {
		if f.o.Peers.Foreign(r.To) && (i >= len(answers) || answers[i].Answer == wire.ForwardAck_ANSWER_NOT_OWNER) {
			f.o.Peers.ForgetOwner(r.To, owner)
		}
	}
}
