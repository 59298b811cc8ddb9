package replica

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/node/replica/message"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

const (
	gossipFor     = 2 * time.Second // between two requests for what others know
	reconcilePage = 1 << 20         // bytes of rows in one request, at most
)

// Tidier asks other members for ReplicaSets and reconciles copies of dead forks with the winner's
// copy. It drops copies that nobody needs, and gives back copies that a person wants back.
type Tidier struct {
	o           Options
	agreement   *Agreement
	receiver    *Receiver
	trashTidied time.Time // only Run uses it
}

// NewTidier returns the Tidier of a peer.
func NewTidier(o Options, a *Agreement, r *Receiver) *Tidier {
	return &Tidier{o: o, agreement: a, receiver: r}
}

// Run does the Tidier's work every gossipFor. It works faster while it knows no member's
// ReplicaSets or has doubtful reports.
func (t *Tidier) Run(ctx context.Context) error {
	for {
		every := gossipFor
		if !t.agreement.informed.Load() || t.o.Quorum.InDoubt() {
			every = 250 * time.Millisecond
		}
		if !call.Sleep(ctx, every, t.agreement.doubts) {
			return ctx.Err()
		}
		if err := t.askReplicaSets(ctx); err != nil {
			return err
		}
		if err := t.askAbout(ctx); err != nil {
			return err
		}
		if err := t.reconcile(ctx); err != nil {
			return err
		}
		if err := t.DropSurplus(ctx); err != nil {
			return err
		}
		if err := t.tidyTrash(ctx, time.Now()); err != nil {
			return err
		}
		if err := t.trimLogs(); err != nil {
			return err
		}
	}
}

// askReplicaSets asks a random member for its ReplicaSets. It asks the founder first, because a
// peer that knows nothing believes the founder.
func (t *Tidier) askReplicaSets(ctx context.Context) error {
	live, _ := t.o.Placement.Views()
	others := slices.DeleteFunc(slices.Clone(live.Members()), func(m partition.Member) bool { return m.ID == t.o.Self })
	if len(others) == 0 {
		return nil
	}
	peer := others[rand.IntN(len(others))].ID
	if !t.agreement.informed.Load() && t.o.Charter.Founder != t.o.Self && t.o.Placement.Alive(t.o.Charter.Founder) {
		peer = t.o.Charter.Founder
	}
	for after := uint64(0); ; {
		req := &wire.Configs{Want: true, Digest: t.o.Quorum.Digest(), After: after}
		resp, err := t.o.Peers.Call(ctx, peer, &wire.Request{Body: &wire.Request_Configs{Configs: req}})
		if err != nil {
			t.o.Logger.Debug("asking for configs", "peer", peer, "err", err)
			return nil
		}
		a := resp.GetConfigs()
		if known := message.SetsOf(a.GetKnown()); len(known) > 0 {
			if err := t.agreement.Hear(peer, known); err != nil {
				return err
			}
		}
		if a.GetNext() <= after {
			t.agreement.informed.Store(true)
			return nil
		}
		after = a.Next
	}
}

// askedAbout is the number of slices in one request to a peer.
const askedAbout = wire.MaxConfigs / 2

// askAbout asks about slices with reports that do not count yet. It asks peers whose report would
// count, and peers that are said to keep the slice. Each time it also asks one former replica of a
// slice that was adopted since, because that replica may be back. This must not wait until all
// doubts end: a lying peer could prevent that for ever.
func (t *Tidier) askAbout(ctx context.Context) error {
	asks := t.o.Quorum.Doubts()
	maps.DeleteFunc(asks, func(peer string, _ []partition.Slice) bool { return !t.o.Placement.Alive(peer) })
	for peer, ss := range t.o.Quorum.Left() {
		if t.o.Placement.Alive(peer) {
			asks[peer] = append(asks[peer], ss...)
			slices.Sort(asks[peer])
			asks[peer] = slices.Compact(asks[peer])
			break
		}
	}
	answers := make(chan reported)
	var asking sync.WaitGroup
	for peer, ss := range asks {
		asking.Go(func() {
			for page := range slices.Chunk(ss, askedAbout) {
				ctx, cancel := context.WithTimeout(ctx, message.BallotTimeout)
				req := &wire.Configs{Want: true, Digest: t.o.Quorum.Digest(),
					Decided: message.Sets(t.o.Quorum.Of(page...))}
				resp, err := t.o.Peers.Call(ctx, peer, &wire.Request{Body: &wire.Request_Configs{Configs: req}})
				cancel()
				if err != nil {
					t.o.Logger.Debug("asking about configs", "peer", peer, "err", err)
					return
				}
				answers <- reported{peer, message.SetsOf(resp.GetConfigs().GetKnown())}
			}
		})
	}
	go func() { asking.Wait(); close(answers) }()
	var failed error
	for a := range answers {
		failed = errors.Join(failed, t.agreement.Hear(a.from, a.words))
	}
	return failed
}

// reported is what one peer reports about slices.
type reported struct {
	from  string
	words []quorum.SliceReplicas
}

// reconcile sends the rows of each copy of a dead fork to the slice's owner. It forgets the copy
// when all rows have arrived. A crash before the rows are deleted leaves rows without a copy, and
// the next start drops them.
func (t *Tidier) reconcile(ctx context.Context) error {
	for _, s := range t.o.Quorum.Diverged() {
		stands := t.o.Quorum.Stands(s)
		c := t.o.Quorum.ReplicaSet(s)
		if c.Owner == t.o.Self || !t.o.Placement.Alive(c.Owner) {
			continue
		}
		sent, err := t.sendCopy(ctx, c.Owner, s)
		if err != nil {
			return err
		}
		if !sent {
			continue
		}
		drop := !c.Has(t.o.Self)
		if drop && !t.keepTrash(s, whyReconciled) {
			continue
		}
		// The ReplicaSet of s may have changed meanwhile, and changed back. Then the copy may have
		// grown, or may be the one that counts.
		united := false
		err = t.agreement.Decide(func() { united = t.o.Quorum.ForgetDiverged(s, stands) })
		if err == nil && united {
			t.o.Logger.Info("copy of a dead fork reconciled", "slice", s, "owner", c.Owner)
			if drop {
				err = t.o.Store.Log.DropSlice(s)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sendCopy sends all rows of s to peer. It returns false if peer does not take them.
func (t *Tidier) sendCopy(ctx context.Context, peer string, s partition.Slice) (bool, error) {
	var after []byte
	for {
		rows, next, err := t.o.Store.Log.SliceRows(s, after, reconcilePage)
		if err != nil {
			return false, err
		}
		if len(rows) > 0 && !sendRows(ctx, t.o, peer, s, rows) {
			return false, nil
		}
		if len(next) == 0 {
			return true, nil
		}
		after = next
	}
}

// sendRows sends rows of s to peer, which merges them. It returns false if peer refuses or fails.
func sendRows(ctx context.Context, o Options, peer string, s partition.Slice, rows []store.Row) bool {
	req := &wire.Unite{Slice: uint64(s), Rows: message.Rows(rows)}
	_, err := o.Peers.Call(ctx, peer, &wire.Request{Body: &wire.Request_Unite{Unite: req}})
	if err != nil {
		o.Logger.Debug("reconciling", "peer", peer, "slice", s, "err", err)
	}
	return err == nil
}

// DropSurplus drops copies of slices that other peers keep. A majority of the replicas, including
// the owner, must confirm that they have the slice. A peer that was stopped for a while does not
// know what was agreed meanwhile, and the swarm may count on its copy. A dropped copy stays in the
// trash for a while.
func (t *Tidier) DropSurplus(ctx context.Context) error {
	for _, s := range t.o.Quorum.Surplus(time.Now()) {
		c, asked := t.o.Quorum.ReplicaSet(s), time.Now()
		if !t.o.Placement.Alive(c.Owner) {
			continue
		}
		if !t.haveIt(ctx, s, c) || !t.keepTrash(s, whySurplus) {
			continue
		}
		dropped := false
		err := t.agreement.Decide(func() { dropped = t.o.Quorum.ForgetSurplus(s, c, asked) })
		if err == nil && dropped {
			err = t.o.Store.Log.DropSlice(s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// haveIt asks the replicas of s in c whether this peer may drop its copy. It asks the owner first;
// if the owner does not agree, it asks nobody else.
func (t *Tidier) haveIt(ctx context.Context, s partition.Slice, c quorum.ReplicaSet) bool {
	have, asked := 0, map[string]bool{}
	for _, k := range append([]string{c.Owner}, c.Replicas...) {
		if asked[k] {
			continue
		}
		asked[k] = true
		if t.o.Placement.Alive(k) {
			ask := &wire.Compare{Slice: uint64(s), Drop: message.Set(s, c)}
			resp, err := t.o.Peers.Call(ctx, k, &wire.Request{Body: &wire.Request_Compare{Compare: ask}})
			if err == nil && resp.GetCompare().GetDrop() {
				have++
			}
		}
		if k == c.Owner && have == 0 {
			return false
		}
		if have >= c.Quorum() {
			return true
		}
	}
	return false
}

// trimLogs keeps the end of each log, for peers that were away for a moment.
func (t *Tidier) trimLogs() error {
	const long, kept = 4096, 1024
	for _, s := range t.o.Quorum.Kept() {
		if entries, _ := t.o.Store.Log.LogLen(s); entries < long {
			continue
		}
		if err := t.o.Store.Log.TrimLog(s, t.o.Store.Log.LogHead(s)-kept); err != nil {
			return err
		}
	}
	return nil
}
