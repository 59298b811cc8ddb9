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
	gossipFor     = 2 * time.Second // between two askings what others know
	reconcilePage = 1 << 20
)

// Tidier asks others what they know, reconciles copies of dead forks with the winner's, drops
// copies that nobody needs, and gives back those that a person wants back.
type Tidier struct {
	o           Options
	agreement   *Agreement
	receiver    *Receiver
	trashTidied time.Time // Run's alone
}

// NewTidier makes a Tidier.
func NewTidier(o Options, a *Agreement, r *Receiver) *Tidier {
	return &Tidier{o: o, agreement: a, receiver: r}
}

// Run asks others what they know, reconciles copies of dead forks with the
// winner's, and drops copies that nobody needs.
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

// askReplicaSets hears what a member chosen at random knows; the founder at first,
// whose word counts with who knows nothing.
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

// askedAbout is how many slices one peer is asked about at once.
const askedAbout = wire.MaxConfigs / 2

// askAbout asks those whose word would count, or who are said to keep, about slices
// of which something was heard that does not count. Each time it also asks one of
// those who kept a slice that was adopted since: they may be back. That must not wait
// for the end of all doubts, which whoever goes on lying decides.
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

// reported is what a peer says of slices.
type reported struct {
	from  string
	words []quorum.SliceReplicas
}

// reconcile sends the rows of each copy of a dead fork to the slice's owner and
// forgets the copy when all have arrived. A crash before the rows are gone leaves
// rows without a copy, which are dropped at the next start.
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
		// What is known of s may have changed meanwhile, and changed back: then the
		// copy may have grown, or it is the one that counts.
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

// sendCopy sends all rows of s here to peer; false when it does not take them.
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

// sendRows reconciles rows of s with those of peer; false when it does not take them.
func sendRows(ctx context.Context, o Options, peer string, s partition.Slice, rows []store.Row) bool {
	req := &wire.Unite{Slice: uint64(s), Rows: message.Rows(rows)}
	_, err := o.Peers.Call(ctx, peer, &wire.Request{Body: &wire.Request_Unite{Unite: req}})
	if err != nil {
		o.Logger.Debug("reconciling", "peer", peer, "slice", s, "err", err)
	}
	return err == nil
}

// DropSurplus drops copies of slices that others keep, when a majority of their
// replicas says that it has them, the owner among it: a peer that was stopped for a while
// does not know what was agreed meanwhile, and its copy may be counted on. What is
// dropped stays in the trash for a while.
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

// haveIt asks the replicas of s by c whether this peer may drop its copy: the owner first,
// without whose word the others are not asked.
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

// trimLogs keeps of each log what a peer that was away for a moment needs.
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
