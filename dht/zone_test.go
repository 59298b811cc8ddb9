package dht

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	mocknet "github.com/libp2p/go-libp2p/p2p/net/mock"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/echo-node/echo-node/dht/life"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/dht/zone"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
)

// keyIn returns a new identity whose place is in that zone.
func keyIn(t testing.TB, zone string) crypto.PrivKey {
	t.Helper()
	z, err := partition.ParseZone(zone)
	if err != nil {
		t.Fatal(err)
	}
	for {
		if key := newKey(t); z.HasPeer(PeerID(key)) {
			return key
		}
	}
}

// replica answers who-owns from its View, with the depth of its zone.
type replica struct {
	d   *DHT
	lie func(*wire.WhoOwnsAnswer) // changes each answer; nil = the answers are honest
}

func (k *replica) answer(_ context.Context, _ string, req *wire.Request) *wire.Response {
	w := req.GetWhoOwns()
	if w == nil {
		return nil
	}
	s := partition.Slice(w.Slice)
	table := partition.NewTableOf([]partition.Slice{s}, k.d.opts.Charter.Replicas)
	table.SetDepth(k.d.Zone().Depth())
	table.Update(k.d.View())
	a := &wire.WhoOwnsAnswer{Slice: w.Slice, Keepers: table.Replicas(s)}
	if !k.d.Zone().Has(s) {
		a.Keepers = nil
	}
	if k.lie != nil {
		k.lie(a)
	}
	return &wire.Response{Body: &wire.Response_WhoOwns{WhoOwns: a}}
}

// zoned starts peers whose places are in the given zones. The first is the founder. A zone with
// more than most members splits. The peers run in fake time over a network in memory. stop ends
// them.
func zoned(t *testing.T, most int, zones ...string) (ds []*DHT, add func(zone string, join *DHT) *DHT, stop func()) {
	t.Helper()
	net := mocknet.New()
	var charter partition.Charter
	var stops []func()
	add = func(zone string, join *DHT) *DHT {
		key := keyIn(t, zone)
		addr, err := ma.NewMultiaddr(fmt.Sprint("/ip4/127.0.0.1/tcp/", 1000+len(stops)))
		if err != nil {
			t.Fatal(err)
		}
		h, err := net.AddPeer(key, addr)
		if err != nil {
			t.Fatal(err)
		}
		if err := net.LinkAll(); err != nil {
			t.Fatal(err)
		}
		o := Options{Key: key, Host: h}
		if join == nil {
			charter = partition.DefaultCharter("zones", PeerID(key))
			charter.Replicas, charter.SliceBits, charter.ZoneMax = 1, 9, most
		} else {
			o.Join = join.Addrs()
		}
		o.Charter = charter
		d, end := start(t, o)
		d.Handle((&replica{d: d}).answer)
		stops = append(stops, end)
		return d
	}
	for i, z := range zones {
		if i == 0 {
			ds = append(ds, add(z, nil))
		} else {
			ds = append(ds, add(z, ds[0]))
		}
	}
	return ds, add, func() {
		for _, end := range stops {
			end()
		}
		if err := net.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute) // memberlist does not wait for its probes
	}
}

// within waits in fake time until ok holds, and returns how long that took.
func within(t *testing.T, limit time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !ok() {
		if time.Since(began) > limit {
			t.Fatalf("after %s still not: %s", limit, what)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(began)
}

// inZones waits until each peer is in its zone and in no other list. Its View then has as many
// members as are in that zone.
func inZones(t *testing.T, limit time.Duration, ds []*DHT, zones []string) time.Duration {
	t.Helper()
	size := map[string]int{}
	for _, z := range zones {
		size[z]++
	}
	var last string
	defer func() {
		if t.Failed() {
			t.Log(last)
		}
	}()
	return within(t, limit, "every peer is in its zone alone with the others of it", func() bool {
		for i, d := range ds {
			between := d.zones.Between()
			if d.Zone().String() != zones[i] || between || d.View().Len() != size[zones[i]] {
				last = fmt.Sprintf("peer %d of %s: in %s, wider %t, sees %d", i, zones[i], d.Zone(), between,
					d.View().Len())
				return false
			}
		}
		return true
	})
}

// allPlaces returns the zones of nine peers. They are mixed, so that the order of joining does not
// follow the zones. With twelve peers, the race detector itself fails in fake time.
func allPlaces() []string {
	var out []string
	for range 3 {
		out = append(out, "hash/00", "hash/1", "hash/01")
	}
	return out
}

// A swarm of nine splits by itself into three zones of three. Members of other zones find the owner
// of each slice. A peer that comes later finds owners too, and enters its own zone, whichever peer
// it asks first.
func TestZonesSplitAndStrangersFindOwners(t *testing.T) {
	racetest.InFakeTime(t, testZonesSplit)
}

func testZonesSplit(t *testing.T) {
	zones := allPlaces()
	ds, add, stop := zoned(t, 4, zones...)
	defer stop()
	t.Logf("split into three zones %s after the last peer came", inZones(t, 10*time.Minute, ds, zones))

	charter := ds[0].opts.Charter
	want := map[partition.Slice]string{}
	for _, d := range ds {
		table := partition.NewTable(charter)
		table.SetDepth(d.Zone().Depth())
		table.Update(d.View())
		for _, s := range d.Zone().Slices(charter.Slices()) {
			if o := table.Owner(s); want[s] != "" && want[s] != o {
				t.Fatalf("members of %s disagree about %s", d.Zone(), s)
			}
			want[s] = table.Owner(s)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, d := range []*DHT{ds[0], ds[1], ds[2]} {
		for _, s := range charter.Slices() {
			o, err := d.FindOwner(ctx, s)
			if err != nil || o.ID() != want[s] || !o.Zone.Has(s) {
				t.Fatalf("%s finds %v of %s in %s: %v, want %s", d.Zone(), o.Replicas, s, o.Zone, err, want[s])
			}
		}
		before := d.Stats().Zone
		for _, s := range charter.Slices() {
			if _, err := d.FindOwner(ctx, s); err != nil {
				t.Fatal(err)
			}
		}
		after := d.Stats().Zone
		t.Logf("%s: %+v", d.Zone(), after)
		if after.Walks != before.Walks || before.Walks > 12 || after.Forged+after.Foreign+after.Disputed > 0 {
			t.Errorf("%s: second round %+v after %+v", d.Zone(), after, before)
		}
	}

	late := add("hash/01", ds[1]) // ds[1] is in the zone hash/1
	t.Logf("a newcomer is in its zone after %s", inZones(t, 10*time.Minute, append(ds, late), append(zones, "hash/01")))
	found, err := ds[0].FindZone(ctx, late.Zone())
	if err != nil || !slices.ContainsFunc(found, func(x Descriptor) bool {
		return late.Zone().HasPeer(x.Member.ID) &&
			x.Member.ZoneDepth == 2
	}) {
		t.Errorf("providers of %s: %v, %v", late.Zone(), found, err)
	}
}

// A member that holds a slice of the other half keeps all members in the wider list until it has
// given the slice away. Meanwhile all members are already in their halves.
func TestSplitWaitsForHandOver(t *testing.T) {
	racetest.InFakeTime(t, testSplitWaits)
}

func testSplitWaits(t *testing.T) {
	zones := []string{"hash/0", "hash/1", "hash/0", "hash/1", "hash/0", "hash/1"}
	ds, _, stop := zoned(t, 5, zones...)
	defer stop()
	var mu sync.Mutex
	holds := true
	ds[0].SetHolds(func(partition.Zone) bool { mu.Lock(); defer mu.Unlock(); return holds })
	within(t, 60*time.Second, "all are in their halves", func() bool {
		return !slices.ContainsFunc(ds, func(d *DHT) bool { return d.Zone().Depth() != 1 })
	})
	// This is longer than the shortest time in two lists. Still no member has left the wider one.
	time.Sleep(10 * zone.Settle)
	for i, d := range ds {
		if d.View().Len() != len(ds) {
			t.Errorf("peer %d sees %d", i, d.View().Len())
		}
	}
	mu.Lock()
	holds = false
	mu.Unlock()
	t.Logf("apart %s after the last slice was given away", inZones(t, 10*time.Minute, ds, zones))
}

// Members that lie about owners. The asker believes nothing that it cannot check. One liar among
// honest members is outvoted or does no harm.
func TestLiesAboutOwners(t *testing.T) {
	racetest.InFakeTime(t, testLies)
}

func testLies(t *testing.T) {
	zones := []string{"hash/0", "hash/1", "hash/0", "hash/1", "hash/0", "hash/1", "hash/1"}
	ds, _, stop := zoned(t, 6, zones...)
	defer stop()
	inZones(t, 10*time.Minute, ds, zones)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	slicesOf := ds[1].Zone().Slices(ds[1].opts.Charter.Slices())
	honest := func(s partition.Slice) string {
		table := partition.NewTableOf([]partition.Slice{s}, 1)
		table.Update(ds[1].View())
		return table.Owner(s)
	}
	for i, c := range []struct {
		name  string
		liars []int
		lie   func(*wire.WhoOwnsAnswer)
		count func(zone.Stats) uint64
		fails bool
	}{
		{"names itself", []int{1}, func(a *wire.WhoOwnsAnswer) { a.Keepers = []string{ds[1].ID()} },
			func(s zone.Stats) uint64 { return s.Disputed }, false},
		{"names another zone's", []int{1}, func(a *wire.WhoOwnsAnswer) { a.Keepers = []string{ds[0].ID()} },
			func(s zone.Stats) uint64 { return s.Foreign }, false},
		{"another slice", []int{1}, func(a *wire.WhoOwnsAnswer) { a.Slice = uint64(ds[0].Zone()) },
			func(s zone.Stats) uint64 { return s.Foreign }, false},
		{"an identity that nobody is", []int{1},
			func(a *wire.WhoOwnsAnswer) { a.Keepers = []string{PeerID(keyIn(t, "hash/1"))} },
			func(s zone.Stats) uint64 { return s.Forged }, false},
		{"not a peer", []int{1}, func(a *wire.WhoOwnsAnswer) { a.Keepers = []string{"x"} },
			func(s zone.Stats) uint64 { return s.Foreign }, false},
		{"nobody at all", []int{1, 3, 5, 6}, func(a *wire.WhoOwnsAnswer) { a.Keepers = nil },
			func(s zone.Stats) uint64 { return s.NotFound }, true},
		{"all forge", []int{1, 3, 5, 6},
			func(a *wire.WhoOwnsAnswer) { a.Keepers = []string{PeerID(keyIn(t, "hash/1"))} },
			func(s zone.Stats) uint64 { return s.Forged }, true},
	} {
		for _, l := range c.liars {
			ds[l].Handle((&replica{d: ds[l], lie: c.lie}).answer)
		}
		ds[0].zones.Meet(ds[1].Zone(), ds[1].self, ds[3].self, ds[5].self, ds[6].self)
		before := c.count(ds[0].Stats().Zone)
		// Each search asks some of the members, drawn at random. After 36 searches the liar was
		// asked.
		for _, s := range slicesOf[36*i:][:36] {
			o, err := ds[0].FindOwner(ctx, s)
			if c.fails != errors.Is(err, zone.ErrNoOwner) || err == nil && o.ID() != honest(s) {
				t.Errorf("%s: %s: %v, %v, want %s", c.name, s, o.Replicas, err, honest(s))
			}
		}
		if now := c.count(ds[0].Stats().Zone); now == before {
			t.Errorf("%s: is in no metric", c.name)
		}
		for _, l := range c.liars {
			ds[l].Handle((&replica{d: ds[l]}).answer)
		}
	}
}

// Fifty concurrent calls of FindOwner for one slice share one search, and its result is in the
// cache.
func TestFindOwnerIsOneSearch(t *testing.T) {
	racetest.InFakeTime(t, testOneSearch)
}

func testOneSearch(t *testing.T) {
	ds, _, stop := zoned(t, 0, "hash", "hash")
	defer stop()
	converged(t, 20*time.Second, ds...)
	s := ds[0].opts.Charter.Slices()[7]
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if o, err := ds[0].FindOwner(context.Background(), s); err != nil || o.Zone != partition.HashZone {
				t.Errorf("%v %v", o, err)
			}
		})
	}
	all.Wait()
	o, ok := ds[0].KnownOwner(s)
	if !ok {
		t.Fatal("not in the cache")
	}
	ds[0].ForgetOwner(s, "somebody else")
	ds[0].ForgetOwner(s, o.ID())
	if _, ok := ds[0].KnownOwner(s); ok || ds[0].Stats().Zone.Forgotten != 1 {
		t.Error("not forgotten")
	}
	if _, err := ds[0].FindOwner(context.Background(), 1<<60); !errors.Is(err, zone.ErrNoOwner) {
		t.Errorf("a geo slice: %v", err)
	}
	if err := ds[0].Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ds[0].FindOwner(context.Background(), s); !errors.Is(err, life.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
