package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Hand-over of slices (I4, I5, I7): the new owner pulls.
//
//	new owner                         giver (still holds, owns no longer)
//	Transfer{}                  ->    what do you keep that I own?
//	       holds, empty, view   <-
//	Transfer{slice, after}      ->    stops acting in slice, waits for its fetches
//	       rows, next           <-    (until next is empty)
//	imports, synced; holds slice
//	Transfer{release, slices}   ->    drops the rows
//
// After a crash of either side the giver still holds what was not released, and
// the new owner asks again; importing twice changes nothing. A slice nobody
// keeps is adopted empty, but only when every member that could keep it has the
// same View and says it does not.

const handoverEvery = 500 * time.Millisecond

// runHandover follows the View: it asks for what this peer owns and does not
// hold, and regularly for what others still keep of it.
func (n *Node) runHandover(ctx context.Context) error {
	tick := time.NewTicker(handoverEvery)
	defer tick.Stop()
	var lastFull time.Time
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-n.viewChanged:
			lastFull = time.Time{}
		case <-tick.C:
		}
		if n.terr.expire(time.Now()) {
			if err := n.territoryChanged(); err != nil {
				return err
			}
			lastFull = time.Time{}
		}
		if len(n.terr.awaited()) == 0 && time.Since(lastFull) < 5*time.Second {
			continue
		}
		if err := n.takeOver(ctx); err != nil {
			return err
		}
		lastFull = time.Now()
	}
}

// takeOver is one round of asking. It returns store errors only.
func (n *Node) takeOver(ctx context.Context) error {
	if !n.mayAdopt(time.Now()) {
		return nil
	}
	_, view := n.terr.views()
	type reply struct {
		peer string
		ans  *wire.TransferAnswer
	}
	var mu sync.Mutex
	var replies []reply
	var wg sync.WaitGroup
	others := 0
	for _, m := range view.Members() {
		if m.ID == n.id {
			continue
		}
		others++
		wg.Go(func() {
			resp, err := n.call(ctx, m.ID, &wire.Request{Body: &wire.Request_Transfer{Transfer: &wire.Transfer{}}})
			if err != nil {
				n.log.Debug("hand-over: no answer", "peer", m.ID, "err", err)
				return
			}
			if a := resp.GetTransfer(); a != nil {
				mu.Lock()
				replies = append(replies, reply{m.ID, a})
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	agreed := 0
	keptElsewhere := map[partition.Slice]bool{}
	for _, r := range replies {
		if r.ans.View == view.Digest() {
			agreed++
		}
		for _, s := range append(append([]uint64(nil), r.ans.Holds...), r.ans.Empty...) {
			keptElsewhere[partition.Slice(s)] = true
		}
	}
	for _, r := range replies {
		if err := n.pull(ctx, r.peer, r.ans); err != nil {
			return err
		}
	}
	if agreed < others {
		return nil
	}
	var free []partition.Slice
	for _, s := range n.terr.awaited() {
		if !keptElsewhere[s] {
			free = append(free, s)
		}
	}
	return n.adopt(free)
}

// mayAdopt keeps a joiner from taking the whole space for its own before it
// has met the swarm.
func (n *Node) mayAdopt(now time.Time) bool {
	_, view := n.terr.views()
	if len(view.Members()) > 1 {
		return true
	}
	return !n.joiner || now.Sub(n.started) > n.o.OrphanAfter && n.heldBefore
}

// pull takes over what peer keeps of ours. A peer that goes away in the middle
// is asked again in the next round.
func (n *Node) pull(ctx context.Context, peer string, a *wire.TransferAnswer) error {
	var got []partition.Slice
	for _, s := range a.Empty {
		if n.terr.owner(partition.Slice(s)) == n.id {
			got = append(got, partition.Slice(s))
		}
	}
	for _, s := range a.Holds {
		if n.terr.owner(partition.Slice(s)) != n.id {
			continue
		}
		complete, err := n.pullSlice(ctx, peer, partition.Slice(s))
		if err != nil {
			return err
		}
		if complete {
			got = append(got, partition.Slice(s))
		}
	}
	if len(got) == 0 {
		return nil
	}
	if err := n.adopt(got); err != nil {
		return err
	}
	req := &wire.Transfer{Release: true, Slices: make([]uint64, len(got))}
	for i, s := range got {
		req.Slices[i] = uint64(s)
	}
	if _, err := n.call(ctx, peer, &wire.Request{Body: &wire.Request_Transfer{Transfer: req}}); err != nil {
		n.log.Debug("hand-over: release", "peer", peer, "slices", len(got), "err", err) // it offers them again
	}
	n.log.Info("slices taken over", "peer", peer, "slices", len(got))
	return nil
}

func (n *Node) pullSlice(ctx context.Context, peer string, s partition.Slice) (bool, error) {
	var after []byte
	for {
		resp, err := n.call(ctx, peer, &wire.Request{Body: &wire.Request_Transfer{Transfer: &wire.Transfer{Slice: uint64(s), After: after}}})
		if err != nil {
			n.log.Debug("hand-over: page", "peer", peer, "slice", s, "err", err)
			return false, nil
		}
		a := resp.GetTransfer()
		rows := make([]store.Row, len(a.GetRows()))
		for i, r := range a.GetRows() {
			rows[i] = store.Row{Key: r.Key, Value: r.Value}
		}
		if len(rows) > 0 {
			if err := n.store.ImportRows(s, rows); err != nil {
				if !errors.Is(err, store.ErrRow) {
					return false, fmt.Errorf("hand-over: %w", err)
				}
				n.log.Warn("hand-over: rows refused", "peer", peer, "slice", s, "err", err)
				return false, nil
			}
		}
		if len(a.GetNext()) == 0 {
			return true, nil
		}
		after = a.Next
	}
}

// adopt holds slices, durably before it acts in them.
func (n *Node) adopt(ss []partition.Slice) error {
	if len(ss) == 0 {
		return nil
	}
	n.terr.adopt(ss...)
	if err := n.persistTerritory(); err != nil {
		return err
	}
	n.crawler.SetSlices(n.terr.acting())
	n.forward.reread()
	return nil
}

// serveTransfer is the giver's side.
func (n *Node) serveTransfer(from string, t *wire.Transfer) (*wire.Response, error) {
	_, view := n.terr.views()
	if _, member := view.Find(from); !member {
		return refuse(wire.Refusal_CODE_BUSY, "not a member in this peer's view yet", time.Second), nil
	}
	a := &wire.TransferAnswer{View: view.Digest()}
	done := func(err error) (*wire.Response, error) {
		return &wire.Response{Body: &wire.Response_Transfer{Transfer: a}}, err
	}
	switch {
	case t.Release:
		return done(n.released(from, t.Slices))
	case t.Slice == 0:
		for _, s := range n.terr.keptFor(from) {
			rows, _, err := n.store.SliceRows(s, nil, 1)
			if err != nil {
				return nil, err
			}
			if len(rows) > 0 || n.crawler.Busy(s) > 0 {
				a.Holds = append(a.Holds, uint64(s))
			} else if ok, _ := n.terr.release(s); ok {
				a.Empty = append(a.Empty, uint64(s))
			}
		}
		return done(nil)
	}
	s := partition.Slice(t.Slice)
	ok, fresh := n.terr.release(s)
	if !ok || n.terr.owner(s) != from {
		return refuse(wire.Refusal_CODE_BUSY, "that slice is not kept here for you", time.Second), nil
	}
	if fresh {
		n.crawler.SetSlices(n.terr.acting())
	}
	if n.crawler.Busy(s) > 0 {
		return refuse(wire.Refusal_CODE_BUSY, "fetches of that slice are under way", 200*time.Millisecond), nil
	}
	rows, next, err := n.store.SliceRows(s, t.After, MaxTransferPage)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		a.Rows = append(a.Rows, &wire.Row{Key: r.Key, Value: r.Value})
	}
	a.Next = next
	return done(nil)
}

// released drops what the new owner says it has. First the mark, then the
// rows: after a crash between them the rows are only litter, which SliceRows of
// a later hand-over would merge, changing nothing.
func (n *Node) released(to string, ids []uint64) error {
	var gone []partition.Slice
	for _, id := range ids {
		if s := partition.Slice(id); n.terr.holds(s) && n.terr.owner(s) == to {
			gone = append(gone, s)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	n.terr.drop(gone...)
	if err := n.persistTerritory(); err != nil {
		return err
	}
	for _, s := range gone {
		rows, _, err := n.store.SliceRows(s, nil, 1)
		if err != nil {
			return fmt.Errorf("hand-over: %w", err)
		}
		if len(rows) == 0 {
			continue // most slices of a young swarm: spares a sync each
		}
		if err := n.store.DropSlice(s); err != nil {
			return fmt.Errorf("hand-over: drop: %w", err)
		}
	}
	n.log.Info("slices handed over", "peer", to, "slices", len(gone))
	return nil
}

// persistTerritory must be called after every change of what is held.
func (n *Node) persistTerritory() error {
	b, err := n.terr.remember()
	if err != nil {
		return err
	}
	return n.store.SetMeta(metaTerritory, b)
}
