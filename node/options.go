package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/echo-node/echo-node/crawler"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/judge/period"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/crawler/web"
	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/backup"
	"github.com/echo-node/echo-node/node/quota"
	"github.com/echo-node/echo-node/partition"
)

// Options are the arguments of Create and Open. The zero value of every field except Dir is usable.
type Options struct {
	Dir string // data directory: identity, store, index. Required

	// The swarm. Swarm is its name (default "echo"). A joiner may leave it empty and takes the name
	// of the swarm.
	Swarm  string
	Join   []string // multiaddrs with /p2p/ID, files of them, or DNS names
	Listen []string // multiaddrs; default QUIC and TCP on any free port
	MDNS   bool     // find peers on the local network
	LAN    bool     // the swarm is on a local network: see dht.Options.LAN
	// Private founds a swarm that only peers with an invite or the swarm's key can join. Invite is
	// an invitation code; if Join is empty, its addresses are used. SwarmKey is 32 bytes that the
	// members share.
	Private  bool
	Invite   string
	SwarmKey []byte
	// Overrides says which peers may override verdicts on accounts in a new swarm:
	// partition.OverridesFounder or OverridesMembers; "" as in Charter.Overrides.
	Overrides string
	Partition partition.Mode
	SliceBits int // for a new swarm; default 12
	// S2 level of a new swarm's geo slices, 4 to 12; default 7, cells of about 80 km. Geo mode
	// only.
	CellLevel int
	Replicas  int // replicas of each slice of a new swarm, 1 to 7; default 3
	Capacity  int // 1 to 16, default 1: this peer's share of the swarm
	Location  *partition.Point
	// ZoneMax is the number of members above which a zone of a new swarm splits; 0: one zone for
	// ever. See partition.ZoneRule. Not in geo mode yet.
	ZoneMax int
	// OrphanAfter is how long a vanished member keeps its place among the replicas of its slices.
	// It is also how long a slice waits for a vanished majority of its replicas. Default 60 s.
	OrphanAfter time.Duration

	// Leave is how long Run may take to give this peer's slices to other peers when its context
	// ends. Default 0: it stops at once.
	Leave time.Duration

	// The crawl.
	Delay    time.Duration // least gap between two requests to a site; default 1 s
	Workers  int           // fetches under way at most; default 64
	MaxDepth int           // links from a seed; default 100
	// A period of time. Links that promise pages about it are fetched first. Default nil: links
	// nearer to a seed first.
	Scope   period.Scope
	Revisit time.Duration // how often a page is revisited, on average; default 0: never
	Contact string        // in the user agent; required to crawl anything except loopback
	// Social says how accounts of services are followed: with which credentials, which accounts,
	// how far back. The node sets Store, Client, Now and Logger.
	Social social.Options
	// Media is the largest size, in bytes, of files that are fetched and stored because posts or
	// profiles of followed accounts name them. At most 2 MiB. It does not depend on KeepBodies.
	// Default 0: no files. Not in geo mode yet.
	Media int64
	// Fanout is the number of units over which the accounts of one Mastodon instance are spread in
	// a new swarm. So as many peers share them, each with its own rate budget. Default 1: one
	// peer has the whole instance, which can then be placed in geo mode.
	Fanout   int
	AllowNet []netip.Prefix
	// AllowPorts are ports below 1024 that the crawler may use beside 80 and 443. Ports that
	// browsers refuse (partition.BadPort) stay refused.
	AllowPorts []fetch.PortRange
	Hosts      map[string]netip.Addr // fixed resolver: host name -> address
	FromAddr   netip.Addr            // source address of requests
	// KeepBodies stores the headers and bodies of this peer's fetches, for export as WARC. The
	// other replicas of a slice store what its owner stores. Default: only records, and the earlier
	// records of a page that changed.
	KeepBodies bool

	// The volunteer's own limits; zero = none.
	MaxRate      float64 // requests per second
	MaxBandwidth int64   // bytes per second
	MaxDisk      int64   // bytes of the data directory on the disk; see disk.go
	Hours        string  // "22-07", local time

	// JudgeMemory is the most memory, in bytes, for all pages that are read and judged at once;
	// default 512 MiB.
	JudgeMemory int64

	// BackupDir is where this peer makes a backup every BackupEvery (default 24 h). The newest
	// BackupKeep (default 3) stay. "" = no backups.
	BackupDir   string
	BackupEvery time.Duration
	BackupKeep  int

	// Undelete is how long a dropped copy of a slice stays in Dir/trash, from where restore --trash
	// brings it back. The default is the constant Undelete; below 0, no copy is kept. UndeleteMax
	// is the most bytes of all such copies. The oldest are removed first. The default is the
	// constant UndeleteMax.
	Undelete    time.Duration
	UndeleteMax int64

	// Scrub is how often all tables of the store are read to find damaged ones; default 0: never.
	Scrub time.Duration

	Credit quota.Limits // limits for each other peer

	QueryTimeout time.Duration // for one query over the swarm; default 5 s

	Version string
	Logger  *slog.Logger // default: discard

	// For tests: real parts in memory.
	FS       vfs.FS         // the store's file system; default the disk
	IndexDir string         // default Dir/index; "memory" keeps the index in memory
	Key      crypto.PrivKey // instead of Dir/identity.key
	Host     host.Host      // instead of one made from Listen
	// Transport answers the fetcher instead of the network.
	Transport http.RoundTripper
	// Source wraps each source of the crawler.
	Source func(crawler.Source) crawler.Source
	// Around wraps every call to another peer; see dht.Options.
	Around func(ctx context.Context, to string, req *wire.Request, next dht.Caller) (*wire.Response, error)
	// Fatal is called when the disk fails so that nothing can be promised, or when the agreement
	// about slices does not advance. It must not return. Default: it panics.
	Fatal func(error)
}

// Limits of a node that no flag changes.
const (
	MinRevisit   = time.Minute      // the least Options.Revisit
	MaxSliceBits = 16               // for a new swarm: a query names its slices
	CallTimeout  = 10 * time.Second // for one request to one peer
)

func (o Options) withDefaults() Options {
	if o.Partition == "" {
		o.Partition = partition.ModeHash
	}
	if o.SliceBits == 0 {
		o.SliceBits = 12
	}
	if o.Replicas == 0 {
		o.Replicas = 3
	}
	if o.Capacity == 0 {
		o.Capacity = 1
	}
	if o.OrphanAfter == 0 {
		o.OrphanAfter = time.Minute
	}
	if o.Delay == 0 {
		o.Delay = time.Second
	}
	if o.Workers == 0 {
		o.Workers = 64
	}
	if o.JudgeMemory == 0 {
		o.JudgeMemory = 512 << 20
	}
	if o.MaxDepth == 0 {
		o.MaxDepth = 100
	}
	if o.Undelete == 0 {
		o.Undelete = Undelete
	}
	if o.UndeleteMax == 0 {
		o.UndeleteMax = UndeleteMax
	}
	if o.BackupEvery == 0 {
		o.BackupEvery = 24 * time.Hour
	}
	if o.BackupKeep == 0 {
		o.BackupKeep = 3
	}
	if o.QueryTimeout == 0 {
		o.QueryTimeout = 5 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if o.IndexDir == "" {
		o.IndexDir = filepath.Join(o.Dir, "index")
	}
	return o
}

// validate reports every fault at once.
func (o Options) validate() error {
	var faults []error
	fault := func(bad bool, format string, a ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, a...))
		}
	}
	fault(o.Dir == "", "no data directory: give --data DIR")
	fault(o.Partition != partition.ModeHash && o.Partition != partition.ModeGeo, "partition %q: give hash or geo",
		o.Partition)
	fault(o.Overrides != "" && o.Overrides != partition.OverridesFounder && o.Overrides != partition.OverridesMembers,
		"overrides %q: give %s or %s", o.Overrides, partition.OverridesFounder, partition.OverridesMembers)
	fault(o.Replicas < 1 || o.Replicas > 7, "replicas %d: give 1 to 7", o.Replicas)
	fault(o.CellLevel != 0 && (o.CellLevel < partition.ParentLevel || o.CellLevel > 12), "cell level %d: give 4 to 12",
		o.CellLevel)
	fault(o.CellLevel != 0 && o.Partition == partition.ModeHash, "cell level %d: only a swarm in geo mode has cells",
		o.CellLevel)
	fault(o.Capacity < 1 || o.Capacity > 16, "capacity %d: give 1 to 16", o.Capacity)
	fault(o.ZoneMax != 0 && o.Partition == partition.ModeGeo, "zone max %d: a swarm in geo mode has no zones yet",
		o.ZoneMax)
	fault(o.ZoneMax < 0 || o.ZoneMax > partition.MaxZoneMembers, "zone max %d: give 0 to %d", o.ZoneMax,
		partition.MaxZoneMembers)
	fault(o.Fanout < 0 || o.Fanout > partition.MaxFanout, "fanout %d: give 1 to %d", o.Fanout, partition.MaxFanout)
	fault(o.Media < 0 || o.Media > web.MaxFile, "media of up to %d bytes: give 1 to %d, or 0 for none", o.Media,
		web.MaxFile)
	fault(o.Media > 0 && o.Partition == partition.ModeGeo, "media: a swarm in geo mode has no files of accounts yet")
	if err := o.Social.Validate(); err != nil {
		faults = append(faults, err)
	}
	fault(o.SliceBits < 1 || o.SliceBits > MaxSliceBits, "slice bits %d: give 1 to %d", o.SliceBits, MaxSliceBits)
	fault(o.Delay < 0, "delay %s is negative", o.Delay)
	fault(o.Revisit != 0 && o.Revisit < MinRevisit, "revisit %s: give 0 or %s and more", o.Revisit, MinRevisit)
	fault(o.BackupEvery < backup.MinEvery, "backup-every %s: give %s and more", o.BackupEvery, backup.MinEvery)
	fault(o.BackupKeep < 0, "backup-keep %d: give 1 and more", o.BackupKeep)
	fault(o.UndeleteMax < 0, "undelete-max %d is negative", o.UndeleteMax)
	fault(o.Leave < 0, "leave %s is negative", o.Leave)
	fault(o.OrphanAfter < 0, "orphan-after %s is negative", o.OrphanAfter)
	fault(o.MaxRate < 0, "max-rate %g is negative", o.MaxRate)
	fault(o.MaxBandwidth < 0, "max-bandwidth %d is negative", o.MaxBandwidth)
	fault(o.MaxDisk < 0, "max-disk %d is negative", o.MaxDisk)
	fault(o.Workers < 0 || o.Workers > 4096, "workers %d: give 1 to 4096", o.Workers)
	fault(o.JudgeMemory < crawler.MinJudgeMemory, "judge-memory %d: give %d MiB and more", o.JudgeMemory,
		crawler.MinJudgeMemory>>20)
	for _, l := range o.Listen {
		_, err := ma.NewMultiaddr(l)
		fault(err != nil, "listen: %q is not a multiaddr: %w", l, err)
	}
	for _, j := range o.Join {
		fault(j == "", "join: an empty address")
		if a, err := ma.NewMultiaddr(j); err == nil { // else a file or name, which may appear later
			_, noID := a.ValueForProtocol(ma.P_P2P)
			_, noName := a.ValueForProtocol(ma.P_DNSADDR)
			fault(noID != nil && noName != nil, "join: %s has no /p2p/ID at its end", j)
		}
	}
	if _, err := o.ways(); err != nil {
		faults = append(faults, err)
	}
	if _, err := crawler.ParseHours(o.Hours); err != nil {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// Validate reports every fault of o at once, defaults applied.
func (o Options) Validate() error { return o.withDefaults().validate() }
