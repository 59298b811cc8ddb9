package geo

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/geo/atlas"
)

// account is a simulated account: where its owner lives, and what its profile says.
type account struct {
	key      partition.Key
	home     partition.Point
	declared string
}

// accountsOf draws n accounts. Accounts of Bluesky or X have their own place. People of an
// instance mostly live around one town. Of five profiles, three name the town and the country,
// one only the country, and one has no information. Towns are drawn by population.
func accountsOf(w *world, towns []atlas.Place, service string, n, instances int) []account {
	countries := map[string]string{}
	for i := range w.g.table.Len() {
		if p := w.g.table.Place(i); p.Rank == atlas.Country {
			countries[p.Country] = p.Name
		}
	}
	town := func() atlas.Place { return towns[w.drawIndex()] }
	homes := make([]atlas.Place, instances)
	for i := range homes {
		homes[i] = town()
	}
	out := make([]account, n)
	for i := range out {
		at := town()
		var k string
		switch service {
		case "mastodon":
			host := min(w.rand.IntN(instances), w.rand.IntN(instances)) // some are larger
			if w.rand.IntN(10) < 8 {
				at = homes[host]
			}
			k = fmt.Sprintf("mastodon:user%d@instance%d.example", i, host)
		case "bluesky":
			k = "bluesky:did:plc:" + strings.NewReplacer("0", "a", "1", "b", "8", "c", "9",
				"d").Replace(fmt.Sprintf("%024d", i))
		default:
			k = fmt.Sprintf("twitter:%d", 1000+i)
		}
		key, err := partition.ParseKey(k)
		if err != nil {
			panic(err)
		}
		text := [...]string{at.Name + ", " + countries[at.Country], at.Name + ", " + countries[at.Country], at.Name +
			", " + countries[at.Country], countries[at.Country], "in your head"}[i%5]
		out[i] = account{key, partition.Point{Lat: at.Lat, Lon: at.Lon}, text}
	}
	return out
}

// Placement works on units. The test has 10,000 accounts: of instances that stay together (f =
// 1), and of services where every account is a unit (f = 0). Accounts that a hash groups
// together (f = 64) are no unit and stay in their hash slices.
func TestAccounts(t *testing.T) {
	j := judge(t)
	c := partition.DefaultCharter("geo", "founder")
	c.Mode, c.CellLevel, c.Gazetteer = partition.ModeGeo, CellLevel, j.g.Digest()
	c.Fanout = map[string]int{"mastodon": 1, "bluesky": 0, "twitter": 64}
	all, err := c.AllSlices(j.Slices())
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(j.g, 7)
	towns := w.places
	var accounts []account
	accounts = append(accounts, accountsOf(w, towns, "mastodon", 4_000, 100)...)
	accounts = append(accounts, accountsOf(w, towns, "bluesky", 5_000, 1)...)
	accounts = append(accounts, accountsOf(w, towns, "twitter", 1_000, 1)...)

	// What the registrar knows of a unit when it places it: the first accounts of the unit that
	// it has seen.
	facts := map[partition.Unit]*Facts{}
	for _, a := range accounts {
		u := c.Unit(a.key)
		if u == "" {
			continue
		}
		f := facts[u]
		if f == nil {
			f = &Facts{Unit: u, Host: a.key.Host()}
			facts[u] = f
		}
		if len(f.Declared) < MaxDeclared {
			f.Declared = append(f.Declared, a.declared)
		}
	}
	placed := map[partition.Unit]partition.Slice{}
	for u, f := range facts {
		if g := j.Place(*f); g.Slice != 0 {
			placed[u] = g.Slice
		}
	}
	slice := make([]partition.Slice, len(accounts))
	for i, a := range accounts {
		slice[i] = c.Slice(a.key)
		if s, ok := placed[c.Unit(a.key)]; ok {
			slice[i] = s
		}
		if !c.MayHold(slice[i], a.key) {
			t.Fatalf("%s may not be in %v", a.key, slice[i])
		}
	}
	together(t, c, accounts, slice)
	members, at := w.peers(64)
	table := partition.NewTableOf(all, 3)
	peak, rounds := settle(t, table, members, slice)
	t.Logf("10,000 accounts, 64 peers: largest load %.2f of the mean after %d rounds of load steps", peak, rounds)
	if peak >= 2 {
		t.Errorf("largest load %.2f of the mean", peak)
	}
	for _, service := range []string{"mastodon", "bluesky", "twitter"} {
		var owned, hashed []float64
		units, n, near := map[partition.Unit]bool{}, 0, 0
		for i, a := range accounts {
			if a.key.Service() != service {
				continue
			}
			units[c.Unit(a.key)] = true
			owned, hashed = append(owned, km(a.home, at[table.Owner(slice[i])])),
				append(hashed, km(a.home, at[table.Owner(c.Slice(a.key))]))
			if !slice[i].IsHash() {
				n++
				if apart(slice[i], j.At(a.home)) < 100 {
					near++
				}
			}
		}
		total := len(owned)
		o, h := median(owned), median(hashed)
		t.Logf("%s, fan-out %d: %d accounts in %d units; %d placed, %d of them within 100 km of home; median %.0f km to the owner, %.0f km by hash",
			service, c.Fanout[service], total, len(units), n, near, o, h)
		if service != "twitter" && o > h/4 {
			t.Errorf("%s: %.0f km to the owner, %.0f by hash", service, o, h)
		}
		if service == "twitter" && n > 0 {
			t.Errorf("%d accounts of no unit were placed", n)
		}
		if service == "bluesky" && (len(units) != total || n < total*7/10 || near < n/2) {
			t.Errorf("bluesky: %d of %d placed alone, %d near", n, total, near)
		}
	}
}

// together checks that the accounts of a unit are in one slice, and that those of a service
// with fan-out 0 are not.
func together(t *testing.T, c partition.Charter, accounts []account, slice []partition.Slice) {
	t.Helper()
	of := map[partition.Unit]partition.Slice{}
	alone := map[partition.Slice]bool{}
	hosts := map[string]bool{}
	for i, a := range accounts {
		u := c.Unit(a.key)
		if s, ok := of[u]; ok && u != "" && s != slice[i] {
			t.Fatalf("unit %s is in %v and %v", u, s, slice[i])
		}
		of[u] = slice[i]
		if a.key.Service() == "bluesky" {
			alone[slice[i]] = true
		}
		if a.key.Service() == "mastodon" {
			hosts[a.key.Host()] = true
			if u != partition.Unit("mastodon:"+a.key.Host()) {
				t.Fatalf("%s is of unit %s", a.key, u)
			}
		}
	}
	if len(alone) < 500 || len(hosts) < 80 {
		t.Errorf("Bluesky is in %d slices, there are %d instances", len(alone), len(hosts))
	}
	if !slices.ContainsFunc(slice, partition.Slice.IsHash) {
		t.Error("everything was placed, the unknown too")
	}
}
