package churn

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

func TestThePlanOfTheDefaults(t *testing.T) {
	o := Options{Program: []string{"x"}}.filled()
	got := map[string][]time.Duration{}
	victims := []int{}
	for _, e := range plan(o) {
		got[e.act] = append(got[e.act], e.at)
		if e.act == actKill {
			victims = append(victims, e.peer)
		}
		if e.act == actCut && len(e.side) != 4 {
			t.Errorf("a half of 8 peers is %v", e.side)
		}
	}
	if n := len(got[actKill]); n != 11 || got[actKill][0] != 10*time.Second || got[actKill][10] != 110*time.Second ||
		len(got[actRestart]) != 11 {
		t.Errorf("kills at %v, restarts at %v", got[actKill], got[actRestart])
	}
	if c, h := got[actCut], got[actHeal]; len(c) != 1 || len(h) != 1 || h[0]-c[0] != 20*time.Second {
		t.Errorf("cut at %v, healed at %v", c, h)
	}
	if j := got[actJoin]; len(j) != 1 || got[actBefore][0] != j[0]-1 || got[actAfter][0] != j[0]+settleJoin {
		t.Errorf("join at %v, owners before at %v, after at %v", j, got[actBefore], got[actAfter])
	}
	for i := range victims[1:] {
		if victims[i] == victims[i+1] {
			t.Errorf("peer %d is killed twice in a row", victims[i])
		}
	}
	if !reflect.DeepEqual(plan(o), plan(o)) {
		t.Error("two plans of the same options differ")
	}
	o.Seed++
	if len(plan(o)) == 0 || reflect.DeepEqual(victims, victimsOf(plan(o))) {
		t.Error("another seed kills the same")
	}
}

// A peer that is still starting when the swarm is cut or healed gets the order.
func TestWhoIsStartingHearsOfTheCut(t *testing.T) {
	f, err := newFleet(Options{Program: []string{"x"}, Peers: 3, Joins: -1}.filled(), false, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.world.Close(); err != nil {
			t.Error(err)
		}
	})
	heard := make([]stdin, 2) // of the running members; the first has sent nothing yet
	for i, m := range f.members {
		m.id = m.spec.Name
		if i < len(heard) {
			m.life, m.last.Peers = &life{stdin: &heard[i]}, i
		}
	}
	for _, side := range [][]int{{0}, nil} {
		if err := f.split(side); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{`{"do":"cut","ids":["swarm2","swarm3"]}` + "\n" + `{"do":"cut"}` + "\n",
		`{"do":"cut","ids":["swarm1"]}` + "\n" + `{"do":"cut"}` + "\n"}
	for i := range heard {
		if got := heard[i].String(); got != want[i] {
			t.Errorf("%s heard %q, want %q", f.members[i].spec.Name, got, want[i])
		}
	}
}

type stdin struct{ bytes.Buffer }

func (*stdin) Close() error { return nil }

func victimsOf(all []event) (v []int) {
	for _, e := range all {
		if e.act == actKill {
			v = append(v, e.peer)
		}
	}
	return v
}

func TestWrongOptionsAreNamedAllAtOnce(t *testing.T) {
	err := Options{Peers: -1, Partition: "sea", Delay: 1, Replicas: -2}.Check()
	for _, word := range []string{"program", "peers -1", "sea", "delay", "replicas -2"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v does not name %s", err, word)
		}
	}
}

// crawled returns a fleet whose test web got requests for these pages, and the records that a
// correct crawler makes of them.
func crawled(t *testing.T, skip func(url string) bool) (*fleet, map[partition.Key][]store.Record) {
	t.Helper()
	f := &fleet{o: Options{Program: []string{"x"}, Sites: 12, Pages: 4}.filled(), visits: &crawltest.Visits{}}
	f.world = crawltest.NewWorld(crawltest.Options{Sites: 12, Pages: 4, Seen: f.visits.Add})
	records := map[partition.Key][]store.Record{}
	for _, u := range f.world.Expected(f.world.Seeds()) {
		if skip(u) {
			continue
		}
		req := httptest.NewRequest(http.MethodGet, u, nil)
		req.RemoteAddr = "127.80.0.1:1"
		f.world.Handler().ServeHTTP(httptest.NewRecorder(), req)
		p, _ := f.world.Page(u)
		k, err := partition.ParseKey(u)
		if err != nil {
			t.Fatal(err)
		}
		records[k] = []store.Record{{Key: k, Status: p.Status, Text: p.Text}}
	}
	return f, records
}

func TestACrawlWithoutFaultHasNoLoss(t *testing.T) {
	f, records := crawled(t, func(string) bool { return false })
	g := f.account(records)
	if g.Coverage != 1 || g.Overlap != 0 || g.LinksLost+g.RecordsLost+g.RecordsTwice != 0 || g.Pages != g.Expected ||
		g.Pages < 40 {
		t.Errorf("%+v", g)
	}
}

// The measurement can fail: each loss shows in its figure.
func TestEveryLossShows(t *testing.T) {
	home := ""
	f, _ := crawled(t, func(string) bool { return true })
	home = f.world.Home(5)
	lost := func(u string) bool { return u == home }
	f, records := crawled(t, lost)
	if g := f.account(records); g.LinksLost != 1 || g.Pages != g.Expected-1 || g.Coverage >= 1 {
		t.Errorf("a page that was told of and not fetched: %+v", g)
	}

	f, records = crawled(t, func(string) bool { return false })
	delete(records, "web:"+partition.Key(f.world.Home(1)))
	other := partition.Key("web:" + f.world.Home(2))
	records[other][0].Text = "another page"
	third := partition.Key("web:" + f.world.Home(3))
	records[third] = append(records[third], records[third][0])
	if g := f.account(records); g.RecordsLost != 2 || g.RecordsTwice != 1 || g.LinksLost != 0 {
		t.Errorf("a record that is gone, one with another text, one that is there twice: %+v", g)
	}

	again := httptest.NewRequest(http.MethodGet, home, nil)
	f.world.Handler().ServeHTTP(httptest.NewRecorder(), again)
	if g := f.account(records); g.Overlap <= 0 ||
		!slices.ContainsFunc(g.Offences, func(o string) bool { return strings.HasPrefix(o, "twice "+home) }) {
		t.Errorf("a page fetched twice: %+v", g)
	}
}

func TestNothingFetchedMeansOnlyTheSeedsAreLost(t *testing.T) {
	f, _ := crawled(t, func(string) bool { return true })
	if g := f.account(nil); g.LinksLost != len(f.world.Seeds()) || g.Coverage != 0 || g.RecordsLost != 0 {
		t.Errorf("%+v", g)
	}
}

func TestTakeovers(t *testing.T) {
	w := crawltest.NewWorld(crawltest.Options{Sites: 3, Pages: 6, Plain: true, Degree: -1})
	pages := map[int][]string{}
	for _, u := range w.Expected(w.Seeds()) {
		for s := range 3 {
			if strings.HasPrefix(u, w.Home(s)) {
				pages[s] = append(pages[s], u)
			}
		}
	}
	site := func(u string) int {
		for s := range 3 {
			if strings.HasPrefix(u, w.Home(s)) {
				return s
			}
		}
		return -1
	}
	expected := map[string]bool{}
	for _, u := range w.Expected(w.Seeds()) {
		expected[u] = true
	}
	dead, other := netip.MustParseAddr("127.80.0.1"), netip.MustParseAddr("127.80.0.2")
	began := time.Unix(1000, 0)
	at := func(s float64) time.Time { return began.Add(time.Duration(s * float64(time.Second))) }
	visit := func(s float64, site int, page int, from netip.Addr) crawltest.Visit {
		return crawltest.Visit{Site: site, URL: pages[site][page], From: from, At: at(s), Page: true}
	}
	all := []crawltest.Visit{visit(0, 0, 0, dead), visit(0, 1, 0, dead), visit(1, 2, 0, other)}
	for i := range pages[1] { // site 1 is done before the kill
		all = append(all, visit(2, 1, i, dead))
	}
	all = append(all, visit(14.5, 0, 1, other), visit(15, 0, 2, other), visit(16, 2, 1, other))
	told := &told{w, map[string][]string{}}
	if got := takeovers(all, told, site, expected, at(10), dead, at(60)); !slices.Equal(got,
		[]takeover{{after: 4500 * time.Millisecond, by: other}}) {
		t.Errorf("site 0 is asked again after 4.5 s, site 1 was done, site 2 is another's: %v", got)
	}
	if got := takeovers(all[:len(all)-3], told, site, expected, at(10), dead, at(60)); !slices.Equal(got,
		[]takeover{{after: 50 * time.Second}}) {
		t.Errorf("a site that is never asked again counts to the end: %v", got)
	}
}

func TestNaiveOwnersAreEvenAndAgree(t *testing.T) {
	live := []string{"a", "b", "c", "d"}
	count := map[string]int{}
	for i := range 4000 {
		count[naiveOwner(live, string(rune('a'+i%26))+strings.Repeat("x", i/26))]++
	}
	for _, l := range live {
		if count[l] < 800 {
			t.Errorf("%s owns %d of 4000", l, count[l])
		}
	}
}
