package zonesim

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	mrand "math/rand/v2"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

// Options are the parameters of a simulation.
type Options struct {
	Peers    int     // 2 to 1,000,000; default 100,000
	ZoneMax  int     // members above which a zone splits; default 400
	Replicas int     // default 3
	Seed     uint64  // of all random numbers
	Dead     float64 // share of peers in the tables that are dead, 0 to 0.5
	Lookups  int     // searches for an owner with nothing remembered; default 2,000
	Senders  int     // peers whose forwarding is simulated; default 20
	Links    int     // foreign links that each of them forwards; default 50,000
	// links per second of one peer, which gives the age of what is remembered; default 30
	Rate int
	// links that wait for each other to share a message; default 300, which is ten seconds
	Window int
}

// withDefaults returns o with a default for each number that is 0. Seed and Dead have no other
// default.
func (o Options) withDefaults() Options {
	for _, d := range []struct {
		v  *int
		to int
	}{{&o.Peers, 100_000}, {&o.ZoneMax, 400}, {&o.Replicas, 3}, {&o.Lookups, 2000}, {&o.Senders, 20},
		{&o.Links, 50_000}, {&o.Rate, 30}, {&o.Window, 300}} {
		if *d.v == 0 {
			*d.v = d.to
		}
	}
	return o
}

// validate returns all faults of the options, joined.
func (o Options) validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(o.Peers < 2 || o.Peers > 1_000_000, "peers %d is not 2 to 1000000", o.Peers)
	fault(o.ZoneMax < 1, "zone max %d is below 1", o.ZoneMax)
	fault(o.Replicas < 1 || o.Replicas > 7, "replicas %d is not 1 to 7", o.Replicas)
	fault(!(o.Dead >= 0 && o.Dead <= 0.5), "dead %v is not 0 to 0.5", o.Dead)
	fault(o.Lookups < 1 || o.Senders < 1 || o.Links < 1 || o.Rate < 1 || o.Window < 1, "a number is below 1")
	return errors.Join(faults...)
}

// Spread is the distribution of a value.
type Spread struct {
	Mean float64 `json:"mean"`
	P50  int     `json:"p50"`
	P99  int     `json:"p99"`
	Max  int     `json:"max"`
}

// spread returns the distribution of xs, which it sorts. It is zero for no values.
func spread(xs []int) Spread {
	if len(xs) == 0 {
		return Spread{}
	}
	slices.Sort(xs)
	var sum float64
	for _, x := range xs {
		sum += float64(x)
	}
	return Spread{Mean: sum / float64(len(xs)), P50: xs[len(xs)/2], P99: xs[len(xs)*99/100], Max: xs[len(xs)-1]}
}

// Report is the result of a simulation.
type Report struct {
	Peers int     `json:"peers"`
	Dead  float64 `json:"dead"`
	Seed  uint64  `json:"seed"`
	Log2  float64 `json:"log2_peers"`

	Zones        int    `json:"zones"`
	ZoneSize     Spread `json:"members_of_a_peers_zone"`
	RoutingTable Spread `json:"routing_table_entries"`

	// One search for an owner in another zone, with nothing remembered.
	Found    int    `json:"owners_found"`
	Lookups  int    `json:"owners_searched"`
	Hops     Spread `json:"hops"`
	Queries  Spread `json:"kademlia_messages"`
	WhoOwns  Spread `json:"who_owns_calls"`
	SearchMS Spread `json:"search_ms"`

	// Forwarding, with what is remembered. Each message is one request.
	Links           int     `json:"links_forwarded"`
	QueriesPerLink  float64 `json:"kademlia_messages_per_link"`
	WhoOwnsPerLink  float64 `json:"who_owns_calls_per_link"`
	ForwardsPerLink float64 `json:"forward_messages_per_link"`
	CacheHits       float64 `json:"owner_cache_hits"` // share of the links
	KnownZones      float64 `json:"zones_known_to_a_sender"`

	// The membership that a peer keeps, and exchanges completely when it joins.
	BytesPerMember  int     `json:"bytes_per_member"`
	MembershipBytes float64 `json:"membership_bytes_per_peer"`
	FlatBytes       float64 `json:"membership_bytes_in_one_flat_list"`
}

// Run simulates a swarm.
func Run(o Options) (Report, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return Report{}, fmt.Errorf("zone simulation: %w", err)
	}
	s := newSwarm(o)
	r := Report{Peers: o.Peers, Dead: o.Dead, Seed: o.Seed, Log2: math.Log2(float64(o.Peers)), Zones: s.zones}
	sizes := make([]int, o.Peers)
	for i, place := range s.places {
		lo, hi := s.zone(place)
		sizes[i] = hi - lo
	}
	r.ZoneSize = spread(sizes)
	s.lookups(o, &r)
	s.forwards(o, &r)
	var tables []int
	for _, t := range s.tables {
		tables = append(tables, len(t))
	}
	r.RoutingTable = spread(tables)
	var err error
	if r.BytesPerMember, err = memberBytes(); err != nil {
		return Report{}, fmt.Errorf("zone simulation: %w", err)
	}
	r.MembershipBytes = float64(r.BytesPerMember) * r.ZoneSize.Mean
	r.FlatBytes = float64(r.BytesPerMember) * float64(o.Peers)
	return r, nil
}

// stranger returns a living peer and a place outside its zone.
func (s *swarm) stranger(rng *mrand.Rand) (peerNo, uint64) {
	for {
		p, place := peerNo(rng.IntN(len(s.places))), rng.Uint64()
		if !s.dead[p] && (s.zones == 1 || common(s.places[p], place) < int(s.depth[p])) {
			return p, place
		}
	}
}

// lookups makes o.Lookups searches for an owner with nothing remembered, and sets their figures.
func (s *swarm) lookups(o Options, r *Report) {
	rng := mrand.New(mrand.NewPCG(o.Seed, 1<<40))
	var hops, queries, calls, ms []int
	for range o.Lookups {
		p, place := s.stranger(rng)
		w := s.walk(rng, p, place)
		n, members := s.ask(w.found, place)
		queries, calls, ms = append(queries, w.Messages), append(calls, n), append(ms, w.MS)
		if len(members) > 0 {
			hops = append(hops, w.hops[members[0]])
			r.Found++
		}
	}
	r.Lookups, r.Hops, r.Queries, r.WhoOwns, r.SearchMS = o.Lookups, spread(hops), spread(queries), spread(calls),
		spread(ms)
}

// ask asks the peers found until two members of the zone have responded. It returns how many
// were asked, and the members.
func (s *swarm) ask(found []peerNo, place uint64) (calls int, members []peerNo) {
	lo, hi := s.zone(place)
	for _, p := range found {
		if len(members) == witnesses || calls == maxAsked {
			break
		}
		calls++
		if int(p) >= lo && int(p) < hi && !s.dead[p] {
			members = append(members, p)
		}
	}
	return calls, members
}

// sender is what one peer remembers while it forwards.
type sender struct {
	owners   map[uint64]int // slice -> when it was found, in links
	contacts map[int][]peerNo
}

// The web of links, as the package comment describes it, and the cache of owners as in package dht.
const (
	domains   = 10_000_000
	sliceBits = 20
	maxOwners = 1 << 16
	ownerLife = 5 * time.Minute
	contacts  = 8
)

// forwards simulates peers that forward links to other zones, and sets the figures of
// forwarding.
func (s *swarm) forwards(o Options, r *Report) {
	rng := mrand.New(mrand.NewPCG(o.Seed, 1<<41))
	var queries, calls, forwards, hits, zones, foreign int
	life := int(ownerLife.Seconds()) * o.Rate
	for range o.Senders {
		from, _ := s.stranger(rng)
		me := sender{owners: map[uint64]int{}, contacts: map[int][]peerNo{}}
		window := map[peerNo]bool{}
		for i := 0; i < o.Links; {
			// The rank of a domain with a probability of about 1/rank. Its slice is a hash of the
			// rank.
			rank := math.Exp(rng.Float64() * math.Log(domains))
			slice := mrand.New(mrand.NewPCG(uint64(rank), 7)).Uint64() >> (64 - sliceBits)
			place := slice << (64 - sliceBits)
			if common(s.places[from], place) >= int(s.depth[from]) {
				continue // in the peer's own zone: its View has the owner
			}
			i++
			foreign++
			if i%o.Window == 0 {
				clear(window)
			}
			// Time is counted in links: Rate of them are a second.
			if at, known := me.owners[slice]; known && i-at < life {
				hits++
			} else {
				q, c := s.search(rng, from, &me, place)
				queries, calls = queries+q, calls+c
				if len(me.owners) < maxOwners {
					me.owners[slice] = i
				}
			}
			lo, hi := s.zone(place)
			// Any member of the zone, but always the same for one slice.
			owner := peerNo(lo + int(slice*0x9e3779b97f4a7c15>>33)%(hi-lo))
			// Links for the same owner within a Window share one message.
			if !window[owner] {
				window[owner] = true
				forwards++
			}
		}
		zones += len(me.contacts)
	}
	per := func(n int) float64 { return float64(n) / float64(foreign) }
	r.Links, r.QueriesPerLink, r.WhoOwnsPerLink, r.ForwardsPerLink, r.CacheHits = foreign, per(queries), per(calls),
		per(forwards), per(hits)
	r.KnownZones = float64(zones) / float64(o.Senders)
}

// search works like that of package dht: known members of the zone first, then a walk.
func (s *swarm) search(rng *mrand.Rand, from peerNo, me *sender, place uint64) (queries, calls int) {
	zone, _ := s.zone(place)
	known := me.contacts[zone]
	rng.Shuffle(len(known), func(i, j int) { known[i], known[j] = known[j], known[i] })
	calls, members := s.ask(known, place)
	if len(members) < witnesses {
		w := s.walk(rng, from, place)
		n, more := s.ask(w.found, place)
		queries, calls, members = w.Messages, calls+n, append(members, more...)
	}
	for _, p := range members {
		if !slices.Contains(known, p) && len(known) < contacts {
			known = append(known, p)
		}
	}
	me.contacts[zone] = known
	return queries, calls
}

// memberBytes returns the size of one member in the membership, as it is sent. This is its
// sealed descriptor with two addresses, its name, and memberlist's own fields, above all their
// names.
func memberBytes() (int, error) {
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		return 0, err
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return 0, err
	}
	d := wire.Descriptor{Sequence: 1_800_000_000_000, Member: partition.Member{ID: id.String(), Capacity: 1,
		Version: "1.0.0", ZoneDepth: 8, ZoneFree: true,
		Addrs: []string{"/ip4/203.0.113.7/udp/4001/quic-v1", "/ip4/203.0.113.7/tcp/4001"}}}
	sealed, err := d.Seal(key, "00000000000000000000000000000000", wire.MaxDescriptor)
	if err != nil {
		return 0, err
	}
	// address, port, incarnation, versions, state, field names, type bytes
	const beside = 16 + 2 + 4 + 6 + 1 + len("AddrIncarnationMetaNamePortStateVsn") + 12
	return len(sealed) + len(id.String()) + beside, nil
}

// Text writes the report as a table.
func (r Report) Text(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	row := func(what string, s Spread) {
		fmt.Fprintf(w, "%s\t%.1f\t%d\t%d\t%d\n", what, s.Mean, s.P50, s.P99, s.Max)
	}
	fmt.Fprintf(w, "%d peers, %.0f %% of the tables dead, %d zones, seed %d\tmean\tp50\tp99\tmax\n", r.Peers,
		100*r.Dead, r.Zones, r.Seed)
	row("members of a peer's zone", r.ZoneSize)
	row("entries of its routing table", r.RoutingTable)
	row("hops to another zone (log2 n = "+fmt.Sprintf("%.1f", r.Log2)+")", r.Hops)
	row("messages of the walk", r.Queries)
	row("who-owns calls", r.WhoOwns)
	row("milliseconds of the walk", r.SearchMS)
	fmt.Fprintf(w, "owners found\t%d of %d\n", r.Found, r.Lookups)
	fmt.Fprintf(w, "a forwarded link (of %d): Kademlia messages\t%.4f\n", r.Links, r.QueriesPerLink)
	fmt.Fprintf(w, "  who-owns calls\t%.4f\n", r.WhoOwnsPerLink)
	fmt.Fprintf(w, "  forward messages\t%.4f\n", r.ForwardsPerLink)
	fmt.Fprintf(w, "  owner remembered\t%.1f %%\n", 100*r.CacheHits)
	fmt.Fprintf(w, "zones a sender knows in the end\t%.0f\n", r.KnownZones)
	fmt.Fprintf(w, "membership of a peer, bytes\t%.0f\n", r.MembershipBytes)
	fmt.Fprintf(w, "  in one flat list\t%.0f\n", r.FlatBytes)
	return w.Flush()
}
