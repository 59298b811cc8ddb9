package stream

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/crawler/social/calls"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// wakePage is how many rows of a site one query returns.
const wakePage = 1000

// wake reschedules the Keys that were refused with other tokens than this peer has now. It does so
// for each slice that this peer gets, until ctx ends.
func (s *Streams) wake(ctx context.Context, o Peer) error {
	if len(s.o.Calls.Tokens.Sites()) == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	here := map[partition.Slice]bool{}
	tick := time.NewTicker(maintainEvery)
	defer tick.Stop()
	for {
		var err error
		here, err = came(o.Slices(), here, func(sl partition.Slice) error {
			for _, site := range s.o.Calls.Tokens.Sites() {
				if err := s.wakeIn(sl, site, o); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// wakeIn is wake for one site in one slice.
func (s *Streams) wakeIn(sl partition.Slice, site partition.Site, o Peer) error {
	now, sum := s.o.Calls.Now(), s.o.Calls.Tokens.Sum(site)
	if sum == "" {
		sum = calls.NoToken
	}
	for from, more := []byte(nil), true; more; more = from != nil {
		rows, next, err := s.o.Store.Queue.PendingOf(sl, site, from, wakePage)
		if err != nil {
			return err
		}
		var keys []partition.Key
		for _, d := range rows {
			if d.State != store.StateDone || !d.At.After(now) || !refusedToken(d.Reason) {
				continue
			}
			b, err := s.o.Store.Accounts.Checkpoint(sl, d.Key)
			if err != nil && !errors.Is(err, store.ErrNotExist) {
				return err
			}
			// "": the state is older than this field
			if st, err := account.DecodeState(b); err != nil || st.Barred != sum {
				keys = append(keys, d.Key)
			}
		}
		if err := o.Reschedule(sl, keys); err != nil {
			return err
		}
		from = next
	}
	return nil
}

// refusedToken reports whether a row's reason says that the Key may have been refused because no
// token was valid.
func refusedToken(reason string) bool {
	return strings.Contains(reason, string(service.NeedsToken)) || strings.Contains(reason, string(service.Closed))
}
