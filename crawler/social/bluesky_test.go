package social_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/crawler/crawltest/blueskytest"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// skies returns a network that runs by the clock of the test and is a month old, and a peer that
// follows it.
func skies(t *testing.T, o blueskytest.Options, so social.Options) (*blueskytest.World, *peer) {
	t.Helper()
	o.Clock = time.Now
	o.Start = time.Now().Add(-30 * 24 * time.Hour)
	w, err := blueskytest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	so.View, so.Directory = "https://view.test", "https://plc.test"
	hosts := []string{"view.test", "plc.test", "pds.b.test"}
	for n := range o.People {
		hosts = append(hosts, fmt.Sprintf("web%d.test", n))
	}
	return w, newPeer(t, w, so, hosts...)
}

// private reports whether an account opts out of collection, or shows itself only to logged-in
// users.
func private(a blueskytest.Account) bool {
	return a.NoUnauthenticated || strings.Contains(strings.ToLower(a.Bio), "#nobot")
}

func blueskyKey(did string) partition.Key { return partition.Key("bluesky:" + did) }

// written returns the records that the store has of an account, by their addresses.
func (p *peer) written(k partition.Key) map[string]store.Record {
	p.t.Helper()
	out := map[string]store.Record{}
	if err := p.store.Accounts.Posts(0, k, "", func(r store.Record) (bool, error) {
		out[r.Post] = r
		return true,
			nil
	}); err != nil {
		p.t.Fatal(err)
	}
	return out
}

// sameAsSkies compares what p has with the truth. What was written or changed after until may be
// missing.
func (p *peer) sameAsSkies(truth blueskytest.Truth, until time.Time) (posts, tombstones int) {
	p.t.Helper()
	for did, a := range truth.Accounts {
		had := p.written(blueskyKey(did))
		if private(a) {
			if len(had) > 0 {
				p.t.Errorf("%s asks not to be collected, and %d posts are kept", did, len(had))
			}
			continue
		}
		if a.Suspended {
			continue
		}
		for _, uri := range slices.Concat(a.Records, a.Reposts) {
			want, has := truth.Posts[uri], had[uri]
			switch {
			case want.Created.After(until):
			case has.Post == "":
				p.t.Errorf("%s of %s is missing", uri, want.Created)
			case has.Deleted:
				p.t.Errorf("%s is there, and taken for deleted", uri)
			case has.BoostOf != want.Boost || has.Text != want.Text && has.Text != want.ShownText:
				p.t.Errorf("%s: %q %s, want %q %s", uri, has.Text, has.BoostOf, want.Text, want.Boost)
			}
			posts++
		}
		for uri, r := range had {
			if r.Deleted {
				tombstones++
				if truth.Posts[uri].Kept {
					p.t.Errorf("%s is there, and is taken for deleted", uri)
				}
			}
		}
	}
	return posts, tombstones
}

// A peer follows all people of a network, seeded by their handles, within the limits of each
// server. It fetches their profiles, posts and reposts, edits and deletions, followings and
// followers.
func TestBlueskyIsFollowedWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := skies(t, blueskytest.Options{Seed: 5, People: racetest.Fewer(t, 40), Quiet: true,
			Limits: blueskytest.PDSLimits()}, social.Options{Lists: true})
		p.start()
		var seeds []partition.Key
		for _, did := range w.IDs() {
			k, err := partition.ParseKey("bluesky:@" + strings.ToUpper(w.Handle(did)))
			if err != nil {
				t.Fatal(err)
			}
			seeds = append(seeds, k)
		}
		p.seed(seeds...)
		time.Sleep(3 * 24 * time.Hour)
		truth := w.Truth()
		posts, _ := p.sameAsSkies(truth, time.Now().Add(-37*time.Hour))
		lists := 0
		for did, want := range truth.Accounts {
			k := blueskyKey(did)
			if private(want) {
				if d, err := p.store.Queue.DueOf(k); err != nil || d.Reason == "" {
					t.Errorf("%s: %+v %v", did, d, err)
				}
				continue
			}
			rec, err := p.store.Archive.Record(k)
			if err != nil || rec.Kind != store.KindProfile || rec.Title != want.Name || rec.Author != want.Handle ||
				rec.Source != "bluesky" {
				t.Errorf("profile of %s: %+v %v", did, rec, err)
			}
			for name, members := range map[string][]string{"/followers": want.Followers, "/following": want.Following} {
				var keys []string
				for _, m := range members {
					keys = append(keys, "bluesky:"+m)
				}
				slices.Sort(keys)
				if got := p.edges(k + partition.Key(name)); !slices.Equal(got, keys) {
					t.Errorf("%s%s: %d, want %d; gaps %+v", did, name, len(got), len(keys),
						p.gaps(k+partition.Key(name)))
				}
				lists++
			}
		}
		r := w.Report()
		if r.Refused != 0 || posts < 100 || lists < racetest.Fewer(t, 20) {
			t.Errorf("%d posts, %d lists; %+v", posts, lists, r)
		}
		sites := map[string]bool{}
		for _, b := range p.src.Budgets() {
			sites[b.Site] = true
		}
		if !sites["bluesky:"] || !sites["bluesky:pds.b.test"] || !sites["bluesky:plc.test"] {
			t.Errorf("budgets of %v", sites)
		}
		t.Logf("%d people, %d posts, %d lists, %d requests: %v", len(seeds), posts, lists, r.Requests, r.ByPath)
		p.end()
	})
}

// An edited post is fetched again although the AppView shows the old text. A deleted post becomes a
// tombstone, also in a search. A suspended account costs no more calls.
func TestBlueskyEditsDeletesAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := skies(t, blueskytest.Options{Seed: 9, People: 12, Quiet: true, Rate: -1}, social.Options{})
		p.start()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		var names []string
		var dids []string
		for _, did := range w.IDs() {
			if !private(w.Truth().Accounts[did]) {
				user, _, _ := strings.Cut(w.Handle(did), ".")
				names, dids = append(names, user), append(dids, did)
			}
		}
		var ids []string
		for i := range 6 {
			id, err := w.Post(names[0], "bom dia a todos", []string{"lisboa"}[:min(i, 1)]...)
			must(err)
			ids = append(ids, id)
			time.Sleep(time.Minute)
		}
		who, gone := blueskyKey(dids[0]), blueskyKey(dids[1])
		tag, err := partition.ParseKey("bluesky:search/#lisboa")
		must(err)
		p.seed(who, gone, tag)
		time.Sleep(time.Hour)
		if n := len(p.written(who)); n != 6 {
			t.Fatalf("%d posts before, want 6", n)
		}
		must(w.Edit(ids[4], "boa tarde a todos"))
		must(w.Delete(ids[2]))
		must(w.Delete(ids[0])) // nothing lies below it, and no search had it
		must(w.Suspend(names[1]))
		time.Sleep(52 * time.Hour)
		had := p.written(who)
		if r := had[ids[4]]; r.Text != "boa tarde a todos" || len(r.Edits) != 1 {
			t.Errorf("edited: %+v", r)
		}
		for _, id := range []string{ids[0], ids[2]} {
			if r := had[id]; !r.Deleted || r.Text != "" {
				t.Errorf("deleted: %+v", r)
			}
		}
		if found := p.written(tag); len(found) != 5 || found[ids[1]].By != who || !found[ids[2]].Deleted {
			t.Errorf("search: %+v", found)
		}
		if d, err := p.store.Queue.DueOf(gone); err != nil || d.At.Before(time.Now().Add(60*24*time.Hour)) ||
			d.Reason != "suspended" {
			t.Errorf("%s costs a call at %s: %s %v", gone, d.At, d.Reason, err)
		}
		p.end()
	})
}

// Crashes at any time exceed no limit of the PDS, and in the end everything is fetched.
func TestBlueskyCrashesOverspendNothingAndLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := []blueskytest.Limit{{Name: "global", Max: 60, Window: 5 * time.Minute, All: true, Rolling: true}}
		w, p := skies(t, blueskytest.Options{Seed: 4, People: racetest.Fewer(t, 45), Limits: limits},
			social.Options{Lists: true, Calls: 3})
		p.slow = 150 * time.Millisecond // so that some crashes interrupt a call
		rng := rand.New(rand.NewPCG(1, 2))
		p.death = newDeath(p.fs, rng, 50)
		p.start()
		var seeds []partition.Key
		for _, did := range w.IDs() {
			seeds = append(seeds, blueskyKey(did))
		}
		p.seed(seeds...)
		crashes := 60
		if racetest.Small(t) {
			crashes = 15
		}
		p.killed(crashes, 50, rng)
		p.rest(4 * 24 * time.Hour)
		posts, tombstones := p.sameAsSkies(w.Truth(), time.Now().Add(-37*time.Hour))
		// the first answer announces a limit smaller than the table's
		if r := w.Report(); r.Refused > 1 || posts < 100 {
			t.Errorf("%d posts, %d requests, %d refused", posts, r.Requests, r.Refused)
		}
		t.Logf("%d crashes, %d posts, %d tombstones, %d requests", crashes, posts, tombstones, w.Report().Requests)
		p.end()
	})
}

// A PDS that is down for a day delays no other server and is in the ledger. Nothing is lost.
func TestBlueskyGapsAreSaid(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, p := skies(t, blueskytest.Options{Seed: 3, People: 20, Quiet: true,
			Lies: blueskytest.Lies{EmptyLists: true, SearchPaging: true}}, social.Options{Lists: true})
		p.start()
		var who partition.Key
		for did, a := range w.Truth().Accounts {
			if !private(a) && len(a.Followers) > 0 && len(a.Records) > 3 && (who == "" || blueskyKey(did) < who) {
				who = blueskyKey(did)
			}
		}
		search := partition.Key("bluesky:search/e")
		p.seed(who, search)
		time.Sleep(time.Hour)
		if gaps := p.gaps(who + "/followers"); len(gaps) != 1 || gaps[0].What != store.GapIncomplete ||
			gaps[0].Source != "bluesky" || !strings.Contains(gaps[0].Reason, "empty-but-claimed") {
			t.Errorf("a list that is empty: %+v", gaps)
		}
		if gaps := p.gaps(search); len(gaps) == 0 || gaps[0].What != store.GapCut || len(p.written(search)) < 60 {
			t.Errorf("a search of one page: %d, %+v", len(p.written(search)), gaps)
		}
		w.Lie(func(l *blueskytest.Lies) { l.Down = 502 })
		time.Sleep(26 * time.Hour)
		if down := p.gaps(who); len(down) == 0 || down[len(down)-1].What != store.GapUnreachable {
			t.Errorf("servers that are down: %+v", down)
		}
		w.Lie(func(l *blueskytest.Lies) { l.Down = 0 })
		time.Sleep(3 * 24 * time.Hour)
		truth, had := w.Truth(), p.written(who)
		for _, uri := range truth.Accounts[string(who)[len("bluesky:"):]].Records {
			if truth.Posts[uri].Created.Before(time.Now().Add(-37*time.Hour)) && had[uri].Post == "" {
				t.Errorf("%s is missing after the outage", uri)
			}
		}
		if r := w.Report(); r.Requests > 500 {
			t.Errorf("%d requests", r.Requests)
		}
		p.end()
	})
}

// The document that says where the records of an account are can be written by anybody. It cannot
// make a peer ask a private address, or a server without https.
func TestADocumentLeadsToNoPrivateAddress(t *testing.T) {
	inside := 0
	secret := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside++ }))
	defer secret.Close()
	const did = "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"
	pds := ""
	ln, err := net.Listen("tcp", "127.77.0.9:0")
	if err != nil {
		t.Fatal(err)
	}
	all := httptest.Server{Listener: ln,
		Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if strings.HasPrefix(r.URL.Path, "/xrpc/") {
				fmt.Fprintf(w, `{"did":%q,"handle":"alice.example","postsCount":1}`, did)
				return
			}
			fmt.Fprintf(w, `{"id":%q,"service":[{"id":"#atproto_pds","type":"AtprotoPersonalDataServer","serviceEndpoint":%q}]}`, did, pds)
		})}}
	all.Start()
	defer all.Close()
	client, err := fetch.New(fetch.Options{Contact: "test@example.org", AddrDelay: -1,
		AllowNet: []netip.Prefix{netip.MustParsePrefix("127.77.0.0/16")},
		Hosts: map[string]netip.Addr{"pds.example": netip.MustParseAddr("127.0.0.1"),
			"plain.example": netip.MustParseAddr("127.77.0.9")}})
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(strings.TrimPrefix(secret.URL, "http://"), ":")
	for at, why := range map[string]string{secret.URL: "private", "https://pds.example:" + port: "private",
		"https://10.0.0.1": "private", "https://169.254.169.254": "private", "https://[::1]:" + port: "private",
		"http://plain.example:" + port: "nowhere", "http://169.254.169.254": "nowhere", "ftp://x": "nowhere"} {
		pds = at
		charter := partition.DefaultCharter("test", "founder")
		fs := vfs.NewMem()
		s, err := db.Create("data", store.Options{FS: fs, Charter: charter})
		if err != nil {
			t.Fatal(err)
		}
		src, err := social.New(social.Options{Store: s, Client: client, View: all.URL, Directory: all.URL})
		if err != nil {
			t.Fatal(err)
		}
		res, err := src.Fetch(t.Context(), fetch.Task{Due: store.Due{Key: blueskyKey(did)}, Now: time.Now(),
			Gate: func(context.Context) error { return nil }})
		if err != nil || res.Record == nil || len(res.Gaps) != 1 || !strings.Contains(res.Gaps[0].Reason, why) {
			t.Errorf("%s: %+v %+v %v", at, res.Next, res.Gaps, err)
		}
		if err := errors.Join(src.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
	if inside != 0 {
		t.Errorf("%d requests came through", inside)
	}
}
