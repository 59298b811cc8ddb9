package node

import (
	"bytes"
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
//	Transfer{slice, after}      ->    waits for its fetches and admissions
//	       rows, next           <-    (until next is empty)
//	imports, synced; holds slice
//	Transfer{release, slices}   ->    drops the rows
//
// After a crash of either side the giver still holds what was not released, and
// the new owner asks again; importing twice changes nothing. A slice that
// several keep is acted in when the rows of all are here. A slice nobody keeps
// is adopted empty, but only when every member that could keep it has the same
// View and says it does not.

const handoverEvery = 500 * time.Millisecond

// runHandover follows the View: it asks for what this peer owns and does not
// hold, and regularly for what others still keep of it.
func (n *Node) runHandover(ctx context.Context) error {
	tick := time.NewTicker(handoverEvery)
	defer tick.Stop()
	var lastFull time.Time
	strays, err := n.strays()
	if err != nil {
		return err
	}
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
		if err := n.takeOver(ctx, strays); err != nil {
			return err
		}
		if err := n.offer(strays); err != nil {
			return err
		}
		lastFull = time.Now()
	}
}

// strays are the slices that rows are here of and that are not held: what a
// crash or a change of owner left of a hand-over. All of it is elsewhere too.
func (n *Node) strays() (map[partition.Slice]bool, error) {
	out := map[partition.Slice]bool{}
	for _, s := range n.terr.slices {
		if n.terr.holds(s) {
			continue
		}
		rows, _, err := n.store.SliceRows(s, nil, 1)
		if err != nil {
			return nil, fmt.Errorf("hand-over: %w", err)
		}
		if len(rows) > 0 {
			out[s] = true
		}
	}
	return out, nil
}

// offer holds those strays that another peer owns. It reads them, which changes
// nothing there, and they are dropped: left alone, their Keys would be pending
// here for ever and the swarm never idle.
func (n *Node) offer(strays map[partition.Slice]bool) error {
	var theirs []partition.Slice
	for s := range strays {
		switch owner := n.terr.owner(s); {
		case n.terr.holds(s):
			delete(strays, s)
		case owner != n.id && owner != "":
			theirs = append(theirs, s)
			delete(strays, s)
		}
	}
	return n.adopt(theirs)
}

type reply struct {
	peer string
	ans  *wire.TransferAnswer
}

// askAll asks the live members what they keep of ours. agreed says that all of
// the effective view answered, with the same View.
func (n *Node) askAll(ctx context.Context) (replies []reply, agreed bool) {
	live, view := n.terr.views()
	var mu sync.Mutex
	var wg sync.WaitGroup
	same := 1
	for _, m := range live.Members() {
		if m.ID == n.id {
			continue
		}
		wg.Go(func() {
			resp, err := n.call(ctx, m.ID, &wire.Request{Body: &wire.Request_Transfer{Transfer: &wire.Transfer{}}})
			if err != nil {
				n.log.Debug("hand-over: no answer", "peer", m.ID, "err", err)
				return
			}
			a := resp.GetTransfer()
			if a == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			replies = append(replies, reply{m.ID, a})
			if a.View == view.Digest() {
				same++
			}
		})
	}
	wg.Wait()
	return replies, same == len(view.Members())
}

// takeOver is one round of asking. It returns store errors only.
func (n *Node) takeOver(ctx context.Context, strays map[partition.Slice]bool) error {
	if !n.mayAdopt(time.Now()) {
		return nil
	}
	replies, agreed := n.askAll(ctx)
	offers := map[partition.Slice]map[string]bool{} // by slice and peer: with rows
	add := func(peer string, ids []uint64, rows bool) {
		for _, id := range ids {
			s := partition.Slice(id)
			if offers[s] == nil {
				offers[s] = map[string]bool{}
			}
			offers[s][peer] = offers[s][peer] || rows
		}
	}
	for _, r := range replies {
		add(r.peer, r.ans.Holds, true)
		add(r.peer, r.ans.Empty, false)
	}
	if err := n.pull(ctx, offers, strays); err != nil {
		return err
	}
	if !agreed {
		return nil
	}
	var free []partition.Slice
	for _, s := range n.terr.awaited() {
		if offers[s] == nil {
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

// pull takes over what others keep of ours, slice by slice. A peer that goes
// away in the middle is asked again in the next round.
func (n *Node) pull(ctx context.Context, offers map[partition.Slice]map[string]bool, strays map[partition.Slice]bool) error {
	const patience = time.Second // what is here is acted in no later
	var got []partition.Slice
	last := time.Now()
	for s, peers := range offers {
		if n.terr.owner(s) != n.id {
			continue
		}
		complete := true
		for peer, rows := range peers {
			if !rows {
				continue
			}
			all, err := n.pullSlice(ctx, peer, s)
			if err != nil {
				return err
			}
			complete = complete && all
		}
		if complete {
			got = append(got, s)
		} else if !n.terr.holds(s) {
			strays[s] = true
		}
		if time.Since(last) > patience {
			if err := n.taken(ctx, got, offers); err != nil {
				return err
			}
			got, last = nil, time.Now()
		}
	}
	return n.taken(ctx, got, offers)
}

// taken holds slices whose rows are here, and has the others drop theirs.
func (n *Node) taken(ctx context.Context, got []partition.Slice, offers map[partition.Slice]map[string]bool) error {
	if err := n.adopt(got); err != nil {
		return err
	}
	byPeer := map[string][]uint64{}
	for _, s := range got {
		for peer, rows := range offers[s] {
			byPeer[peer] = append(byPeer[peer], uint64(s))
			if rows {
				n.crawler.Wake(s) // it may have been acted in before
			}
		}
	}
	for peer, ids := range byPeer {
		req := &wire.Transfer{Release: true, Slices: ids}
		if _, err := n.call(ctx, peer, &wire.Request{Body: &wire.Request_Transfer{Transfer: req}}); err != nil {
			n.log.Debug("hand-over: release", "peer", peer, "slices", len(ids), "err", err) // it offers them again
		}
		n.log.Info("slices taken over", "peer", peer, "slices", len(ids))
	}
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
		if err := n.importRows(s, rows); err != nil {
			if !errors.Is(err, store.ErrRow) {
				return false, fmt.Errorf("hand-over: %w", err)
			}
			n.log.Warn("hand-over: rows refused", "peer", peer, "slice", s, "err", err)
			return false, nil
		}
		switch {
		case a == nil:
			return false, nil
		case len(a.Next) == 0:
			return true, nil
		case len(rows) == 0 || bytes.Compare(a.Next, after) <= 0:
			n.log.Warn("hand-over: pages that lead nowhere", "peer", peer, "slice", s)
			return false, nil
		}
		after = a.Next
	}
}

// importRows halves a page that is refused: what it expands to has a cap, and
// one site's text can expand a thousandfold.
func (n *Node) importRows(s partition.Slice, rows []store.Row) error {
	if len(rows) == 0 {
		return nil
	}
	err := n.store.ImportRows(s, rows)
	if len(rows) == 1 || !errors.Is(err, store.ErrRow) {
		return err
	}
	half := len(rows) / 2
	if err := n.importRows(s, rows[:half]); err != nil {
		return err
	}
	return n.importRows(s, rows[half:])
}

// adopt holds slices, durably before it acts in them.
func (n *Node) adopt(ss []partition.Slice) error {
	if len(ss) == 0 {
		return nil
	}
	if err := n.persistTerritory(ss...); err != nil {
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
		return done(n.keptFor(from, a))
	}
	s := partition.Slice(t.Slice)
	if n.terr.owner(s) != from || len(t.After) == 0 && !n.terr.release(s) || !n.terr.released(s, from) {
		return refuse(wire.Refusal_CODE_BUSY, "that slice is not kept here for you", time.Second), nil
	}
	n.settleAdmissions()
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

// keptFor lists what is kept here for its owner. What is empty is not looked at
// again, so it must have been empty after all that was done here.
func (n *Node) keptFor(owner string, a *wire.TransferAnswer) error {
	kept := n.terr.keptFor(owner)
	for _, s := range kept {
		n.terr.release(s)
	}
	if len(kept) > 0 {
		n.settleAdmissions()
	}
	for _, s := range kept {
		busy := n.crawler.Busy(s) > 0 // before the rows, which a fetch may change until it ends
		rows, _, err := n.store.SliceRows(s, nil, 1)
		if err != nil {
			return err
		}
		if busy || len(rows) > 0 {
			a.Holds = append(a.Holds, uint64(s))
		} else {
			a.Empty = append(a.Empty, uint64(s))
		}
	}
	return nil
}

// released drops what the new owner says it has. First the mark, then the
// rows: after a crash between them the rows are strays.
func (n *Node) released(to string, ids []uint64) error {
	var gone []partition.Slice
	for _, id := range ids {
		if s := partition.Slice(id); n.terr.released(s, to) {
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

// persistTerritory must be called after every change of what is held. The slices
// of also are held once that is durable, and not before.
func (n *Node) persistTerritory(also ...partition.Slice) error {
	n.persisting.Lock()
	defer n.persisting.Unlock()
	b, err := n.terr.remember(also...)
	if err != nil {
		return err
	}
	if err := n.store.SetMeta(metaTerritory, b); err != nil {
		return err
	}
	n.terr.adopt(also...)
	return nil
}
