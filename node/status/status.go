// Package status is what one peer shows of itself: its status, its samples for Prometheus, and the
// map of the swarm. It reads the parts of the peer and changes none of them.
package status

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/echo-node/echo-node/crawler"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/forward"
	"github.com/echo-node/echo-node/node/geoplace"
	"github.com/echo-node/echo-node/node/hostlease"
	"github.com/echo-node/echo-node/node/placement"
	"github.com/echo-node/echo-node/node/quota"
	"github.com/echo-node/echo-node/node/replica"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/node/replica/replicate"
	"github.com/echo-node/echo-node/node/search"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
	"github.com/echo-node/echo-node/store/index"
	"github.com/echo-node/echo-node/store/trash"
)

// Parts are the parts of the peer that a Board reads.
type Parts struct {
	ID, Version string
	Started     time.Time
	Charter     partition.Charter
	Slices      []partition.Slice // all slices of the swarm

	Store      *db.Store
	Index      *index.Index
	Trash      *trash.Trash
	Crawler    *crawler.Crawler
	Social     *social.Source
	Quorum     *quorum.Machine
	Replicator *replicate.Replicator
	Handover   *replica.Handover
	Replicated *replica.Counts
	Placement  *placement.Placement
	Placer     *geoplace.Placer // nil in hash mode
	Forward    *forward.Forwarder
	Links      *forward.Counts
	Gate       *quota.Gate
	Addresses  *hostlease.Exchange
	Overlay    *dht.DHT
	Search     *search.Engine

	Clock      *Clock
	Counts     *Counts
	DiskUse    func() int64  // bytes that the data directory takes
	Membership func() string // how this peer joined a private swarm, or ""
	Backups    bool          // the peer makes backups
	Logger     *slog.Logger
}

// Counts are what the assembled peer counts since its start.
type Counts struct {
	Restarts      atomic.Int64 // parts that panicked and were started again
	FailedBackups atomic.Int64
	LastBackup    atomic.Int64 // when the newest backup was made, Unix time; 0 = there is none
}

// Board shows the state of a peer. Its methods are safe for concurrent use.
type Board struct {
	Parts
	verdicts verdictCounts
	glance   glance
	progress progress
}

// New returns a Board.
func New(p Parts) *Board { return &Board{Parts: p} }

// Status returns this peer's state. It is cheap enough for a request every second.
func (b *Board) Status() api.Status {
	// Read the crawler before the store. A fetch that ends between the two readings is then counted
	// twice, never missed, so Idle is never true too early.
	c := b.Crawler.Stats()
	owned := b.Quorum.Owned()
	mine := make(map[partition.Slice]bool, len(owned))
	for _, s := range owned {
		mine[s] = true
	}
	all, st := b.Store.Stats(), b.Store.StatsOf(func(s partition.Slice) bool { return mine[s] })
	live, _ := b.Placement.Views()
	now := time.Now()
	acting, shipping := b.Quorum.Active(owned, now), b.Replicator.Lagging(owned)
	s := api.Status{
		Membership: b.Membership(),
		ID:         b.ID, Swarm: b.Charter.Name, Charter: b.Charter.Digest(), Version: b.Version,
		Uptime:  time.Since(b.Started).Seconds(),
		Fetched: all.Fetches, Requests: c.Requests, Failed: c.Failed,
		Records: st.Records, Keys: st.Keys, Pending: st.Pending, Due: int64(c.ReadyKeys), Fetching: c.Fetching,
		Outbox: st.Outbox,
		Slices: acting, SlicesAwaited: len(owned) - acting, SlicesTotal: len(b.Slices),
		SlicesKept: len(b.Quorum.Kept()), SlicesMoving: b.Handover.Moving(), SlicesReplicating: shipping,
		Peers:    len(live.Members()),
		LinksOut: b.Links.LinksOut.Load(), LinksIn: b.Links.LinksIn.Load(),
		IndexLag: int64(search.Lag(b.Store, b.Index)) + int64(b.Index.Waiting()), Limits: c.Limits, Stops: c.Stops,
		Revisits: c.Revisits, Hints: c.Hints, Media: st.Files, MediaBytes: st.FileBytes,
	}
	s.Budgets, s.Streams, s.Rejected, s.Rounds = b.budgets(now), b.streams(), b.rejected(), b.rounds()
	s.AddressesWaiting, s.AddressesBlocked = b.Addresses.Status(now)
	slow := b.glance.at(func() (x readings) {
		x.fingerprints, x.disk = b.Index.Fingerprints(), b.DiskUse()
		x.verdicts, x.languages = b.verdicts.counts(b.Index, b.Logger, owned, now)
		return x
	})
	s.Fingerprints, s.DiskBytes, s.Verdicts, s.Languages = slow.fingerprints, slow.disk, slow.verdicts, slow.languages
	s.Clock, s.Trash = b.Clock.status(now), b.trash()
	s.Quarantined, s.Memory = st.Quarantined, api.Memory{Limit: c.Memory.Limit, Held: c.Memory.Held,
		Most: c.Memory.Most}
	s.Dead = deadShare(st)
	s.Progress = b.progress.of(now, st.Keys, st.Pending, all.Fetches)
	if s.Limits == nil {
		s.Limits = []string{}
	}
	s.Idle = s.Pending == 0 && s.Fetching == 0 && s.Outbox == 0 && s.SlicesAwaited == 0 && s.SlicesReplicating == 0 &&
		len(b.Quorum.Diverged()) == 0 && !b.Forward.Seeding()
	return s
}

// statusWait is how long Status waits for values from the disk or the index, which may be busy.
// After that it shows the values of the last reading.
const statusWait = 150 * time.Millisecond

// readings are the values of Status that must be read.
type readings struct {
	fingerprints, disk  int64
	verdicts, languages map[string]int64
}

// glance holds the last readings. One goroutine reads at a time, for all callers that wait.
type glance struct {
	mu   sync.Mutex
	last readings
	busy chan struct{} // closed when the current reading ends; nil = no reading
}

// at returns the new readings, or the last ones if read takes longer than statusWait.
func (g *glance) at(read func() readings) readings {
	g.mu.Lock()
	busy := g.busy
	if busy == nil {
		busy = make(chan struct{})
		g.busy = busy
		go func() {
			now := read()
			g.mu.Lock()
			defer g.mu.Unlock()
			g.last, g.busy = now, nil
			close(busy)
		}()
	}
	g.mu.Unlock()
	timer := time.NewTimer(statusWait)
	defer timer.Stop()
	select {
	case <-busy:
	case <-timer.C:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.last
}

// deadShare returns the share of records whose Key is not done any more: the page was gone or did
// not answer at the last visit. The record of a Key that was placed elsewhere stays and counts as
// alive.
func deadShare(st store.Stats) float64 {
	if dead := st.Records - st.Done - st.Placed; dead > 0 {
		return float64(dead) / float64(st.Records)
	}
	return 0
}

// trash returns the counts of the trash for Status.
func (b *Board) trash() (t api.Trash) {
	for _, x := range b.Trash.List() {
		t.Slices++
		t.Bytes += x.Bytes
		if x.Wanted {
			t.Wanted++
		}
	}
	return t
}
