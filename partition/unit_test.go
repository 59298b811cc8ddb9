package partition

import (
	"slices"
	"testing"

	"github.com/golang/geo/s2"
	"pgregory.net/rapid"
)

// The Unit of each kind of Key, for fan-outs 0, 1 and 4.
func TestUnit(t *testing.T) {
	c := geoCharter()
	c.Fanout = map[string]int{"mastodon": 1, "bluesky": 0, "twitter": 4}
	for k, want := range map[Key]Unit{
		"web:https://www.example.com/a":      "web:www.example.com",
		"web:http://www.example.com:8080/":   "web:www.example.com:8080",
		"feed:https://www.example.com/rss":   "web:www.example.com",
		"ip:192.0.2.1":                       "",
		"mastodon:alice@m.example":           "mastodon:m.example",
		"mastodon:alice@m.example/followers": "mastodon:m.example",
		"mastodon:m.example/tag/x":           "mastodon:m.example",
		"mastodon:m.example/public":          "mastodon:m.example",
		"mastodon:search/x":                  "",
		"bluesky:" + plc:                     "bluesky:" + plc,
		"bluesky:" + plc + "/following":      "bluesky:" + plc,
		"bluesky:search/x":                   "",
		"bluesky:alice.example":              "",
		"twitter:12":                         "",
		"twitter:12/followers":               "",
		"twitter:search/x":                   "",
	} {
		if got := c.Unit(k); got != want {
			t.Errorf("%s is of unit %q, want %q", k, got, want)
		}
	}
}

// All Keys of a Unit have one Site and one hash slice, for all fan-outs.
func TestUnitOneRegistrar(t *testing.T) {
	keys := []Key{"web:https://a.example/", "web:http://a.example/x?y", "feed:https://a.example/rss",
		"media:https://a.example/i.png", "web:https://b.a.example/",
		"mastodon:m.example/public", "mastodon:m.example/tag/x", "mastodon:search/x", "bluesky:" + plc,
		"bluesky:" + plc + "/followers", "bluesky:search/x", "bluesky:alice.example", "twitter:@alice",
		"twitter:1", "twitter:2", "twitter:3", "twitter:1/followers", "twitter:3/following", "mastodon:a@m.example",
		"mastodon:b@m.example", "mastodon:c@m.example/following", "ip:192.0.2.1"}
	rapid.Check(t, func(t *rapid.T) {
		c := geoCharter()
		c.SliceBits = rapid.IntRange(1, MaxSliceBits).Draw(t, "bits")
		fan := rapid.SampledFrom([]int{0, 1, 2, 3, 1000})
		c.Fanout = map[string]int{"mastodon": fan.Draw(t, "m"), "bluesky": fan.Draw(t, "b"),
			"twitter": fan.Draw(t, "t")}
		site, slice := map[Unit]Site{}, map[Unit]Slice{}
		for _, k := range keys {
			u := c.Unit(k)
			if u == "" {
				continue
			}
			if s, ok := site[u]; ok && s != k.Site() {
				t.Fatalf("unit %q has the sites %q and %q", u, s, k.Site())
			}
			if s, ok := slice[u]; ok && s != c.Slice(k) {
				t.Fatalf("unit %q is in %v and %v", u, s, c.Slice(k))
			}
			site[u], slice[u] = k.Site(), c.Slice(k)
		}
	})
}

// A hash slice may hold its own Keys. A cell of the right level may hold Keys that are placed.
func TestMayHold(t *testing.T) {
	c := geoCharter()
	page := Key("web:https://www.example.com/a")
	lisbon := s2.CellIDFromLatLng(s2.LatLngFromDegrees(38.7, -9.1))
	cell, parent, other := Slice(lisbon.Parent(7)), Slice(lisbon.Parent(4)), Slice(lisbon.Parent(6))
	hash := c
	hash.Mode = ModeHash
	for _, x := range []struct {
		c    Charter
		s    Slice
		k    Key
		want bool
	}{
		{c, c.Slice(page), page, true}, {c, c.Slice(page) ^ 1<<60, page, false}, {c, cell, page, true},
		{c, parent, page, true},
		{c, other, page, false}, {c, 0, page, false}, {c, 3, page, false}, {hash, cell, page, false},
		{c, cell, "ip:192.0.2.1", false},
	} {
		if got := x.c.MayHold(x.s, x.k); got != x.want {
			t.Errorf("%s: may %v hold %s: %v", x.c.Mode, x.s, x.k, got)
		}
	}
	if cell.Level() != 7 || parent.Level() != 4 || c.Slice(page).Level() != -1 || Slice(0).Level() != -1 ||
		Slice(2).Level() != -1 {
		t.Error("levels")
	}
}

// AllSlices joins the hash slices and the cells, and refuses cells that do not fit the charter.
func TestAllSlices(t *testing.T) {
	c := geoCharter()
	lisbon := s2.CellIDFromLatLng(s2.LatLngFromDegrees(38.7, -9.1))
	cells := []Slice{Slice(lisbon.Parent(7)), Slice(lisbon.Parent(4)), Slice(lisbon.Parent(7))}
	all, err := c.AllSlices(cells)
	if err != nil || len(all) != 4096+2 || !slices.IsSorted(all) || cells[2] != cells[0] {
		t.Errorf("%d slices, %v", len(all), err)
	}
	for _, s := range all {
		if !s.Valid() {
			t.Fatalf("%v is not valid", s)
		}
	}
	hash := DefaultCharter("x", "y")
	if all, err := hash.AllSlices(nil); err != nil || len(all) != 4096 {
		t.Errorf("hash: %d slices, %v", len(all), err)
	}
	for name, err := range map[string]error{
		"cells in hash mode": second(hash.AllSlices(cells)), "none in geo mode": second(c.AllSlices(nil)),
		"hash slice as cell": second(c.AllSlices(hash.Slices())),
		"level":              second(c.AllSlices([]Slice{Slice(lisbon.Parent(9))})),
	} {
		if err == nil {
			t.Errorf("%s passes", name)
		}
	}
}

// second returns the error of AllSlices.
func second(_ []Slice, err error) error { return err }
