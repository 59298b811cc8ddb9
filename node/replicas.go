package node

import (
	"context"
	"errors"
	"log/slog"

	"github.com/echo-node/echo-node/crawler"
	"github.com/echo-node/echo-node/node/datadir"
	"github.com/echo-node/echo-node/node/forward"
	"github.com/echo-node/echo-node/node/geoplace"
	"github.com/echo-node/echo-node/node/hostlease"
	"github.com/echo-node/echo-node/node/quota"
	"github.com/echo-node/echo-node/node/replica"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/node/replica/replicate"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/index"
)

// follows implements replica.Rest.
type follows struct {
	addresses  *hostlease.Exchange
	index      *index.Index
	crawler    *crawler.Crawler // nil while the peer is being opened, like forward
	forward    *forward.Forwarder
	swarm      *swarm
	admissible func(k partition.Key) error
	maxDepth   int
	log        *slog.Logger
}

func (f *follows) Gained(gained []partition.Slice) { f.addresses.Gained(gained) }
func (f *follows) Keep(owned []partition.Slice)    { f.index.Keep(owned) }
func (f *follows) Reread()                         { f.forward.Reread() }
func (f *follows) Overrules(peer string) bool      { return f.swarm.Overrules(peer) }

var errDeep = errors.New("deeper than --max-depth")

// MayAdmit returns why k is not admitted at that depth, or nil.
func (f *follows) MayAdmit(k partition.Key, depth int) error {
	if depth > f.maxDepth {
		return errDeep
	}
	return f.admissible(k)
}

// Recrawl sets the slices that the crawler works in, and makes the forwarder read the outbox again.
func (f *follows) Recrawl(all, lost, gained []partition.Slice) {
	if f.crawler == nil || f.forward == nil {
		return // the peer is being opened
	}
	if len(lost) > 0 {
		out := make(map[partition.Slice]bool, len(lost))
		for _, s := range lost {
			out[s] = true
		}
		rest := make([]partition.Slice, 0, len(all))
		for _, s := range all {
			if !out[s] {
				rest = append(rest, s)
			}
		}
		f.crawler.SetSlices(rest)
	}
	if len(gained) > 0 {
		f.crawler.SetSlices(all)
		f.log.Debug("slices gained", "slices", len(gained))
	}
	f.forward.Reread()
}

// crawls implements crawler.Swarm.
type crawls struct {
	agreement  *replica.Agreement
	replicator *replicate.Replicator
	placer     *geoplace.Placer   // nil in hash mode
	forward    *forward.Forwarder // nil while the peer is being opened
}

func (c *crawls) Owns(s partition.Slice) bool                { return c.agreement.Fetches(s) }
func (c *crawls) AtQuorum(s partition.Slice) <-chan struct{} { return c.replicator.Committed(s) }
func (c *crawls) Moves() bool                                { return c.placer != nil }
func (c *crawls) Committed()                                 { c.forward.Notify() }
func (c *crawls) Place(s partition.Slice, r *store.Record) *store.Placement {
	return c.placer.Place(s, r)
}

// replicaOptions returns the options of the parts of package replica.
func (n *Node) replicaOptions() replica.Options {
	n.quorum = quorum.New(quorum.Options{Self: n.id, Founder: n.charter.Founder, Slices: n.slices, Started: n.started,
		Head: n.store.Log.LogHead})
	n.clock.Open(n.id, n.quorum, n.log)
	n.swarm = &swarm{id: n.id, charter: n.charter, store: n.store, quorum: n.quorum, placer: n.placer,
		placement: n.placement}
	n.gate = quota.New(quota.Options{Self: n.id, Limits: n.o.Credit, Swarm: n.swarm, Logger: n.log})
	n.swarm.gate = n.gate
	n.addresses = hostlease.New(hostlease.Options{Self: n.id, Started: n.started, SliceOf: n.store.SliceOf,
		Quorum: n.quorum, Peers: n.swarm, Logger: n.log})
	n.follows = &follows{addresses: n.addresses, index: n.index, swarm: n.swarm, admissible: n.admissible,
		maxDepth: n.o.MaxDepth, log: n.log}
	n.replicator = replicate.New(replicate.Options{Self: n.id, Quorum: n.quorum, Store: n.store,
		Placement: n.placement, Peers: n.swarm, Logger: n.log})
	return replica.Options{Self: n.id, Charter: n.charter, Slices: n.slices, Quorum: n.quorum, Store: n.store,
		Trash: n.trash, Placement: n.placement, Replicator: n.replicator, Peers: n.swarm, Rest: n.follows,
		Logger: n.log, Counts: &n.replicated, Started: n.started, OrphanAfter: n.o.OrphanAfter}
}

// openAgreement restores what was agreed about the slices. In a store restored from a backup, all
// rows belong to forks; see datadir.Restore.
func (n *Node) openAgreement(o replica.Options) error {
	restored, marked, err := n.restored()
	if err != nil {
		return err
	}
	n.agreement = replica.NewAgreement(o)
	if err := n.agreement.Open(!marked); err != nil || marked {
		return err
	}
	// After a crash before this write, Open marks the copies again.
	return n.store.SetMeta(datadir.MetaRestored, []byte(restored))
}

// openReplicas makes the other parts of package replica, which need the rest of the peer.
func (n *Node) openReplicas(o replica.Options) {
	o.Crawler, o.Joiner = n.crawler, n.joiner
	n.elections = replica.NewElections(o, n.agreement)
	n.handover = replica.NewHandover(o, n.agreement, n.elections)
	n.receiver = replica.NewReceiver(o, n.agreement)
	n.tidier = replica.NewTidier(o, n.agreement, n.receiver)
	n.repairs = replica.NewRepairs(o, n.agreement, n.receiver)
	n.swarm.repairs = n.repairs
}

// logged is store.Options.Logged.
func (n *Node) logged(s partition.Slice) {
	if n.replicator != nil {
		n.replicator.Logged(s)
	}
}

// runReplicator sends the logs of owned slices to their other replicas.
func (n *Node) runReplicator(ctx context.Context) error { return n.replicator.Run(ctx, n.agreement) }

// HandOver gives this peer's slices to the other replicas, so that it can stop without stopping the
// crawl anywhere. It works until ctx ends and returns how many slices are left.
func (n *Node) HandOver(ctx context.Context) int { return n.handover.Leave(ctx) }
