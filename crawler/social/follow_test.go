package social_test

import (
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
)

// sameAsTruth compares what p has of the accounts of its world with the truth. What was made or
// changed after until may be missing.
func (p *peer) sameAsTruth(truth mastodontest.Truth, until time.Time) (posts, tombstones int) {
	p.t.Helper()
	for acct, want := range truth.Accounts {
		if !want.Local {
			continue
		}
		k := accountKey(p.t, acct)
		had := p.posts(k)
		if wishes(want) {
			if len(had) > 0 {
				p.t.Errorf("%s asks not to be collected, and %d posts are kept", acct, len(had))
			}
			continue
		}
		if want.Suspended || want.Moved != "" {
			continue
		}
		for _, id := range want.Posts {
			post, has := truth.Posts[id], had[id]
			switch {
			case post.Boost != "" && wishes(truth.Accounts[truth.Posts[post.Boost].By]):
				if has.Post != "" && !has.Deleted {
					p.t.Errorf("%s: a boost of someone who asks not to be collected is kept: %s", acct, id)
				}
			case post.Created.After(until):
			case has.Post == "":
				p.t.Errorf("%s: post %s of %s is missing", acct, id, post.Created)
			case has.Deleted:
				p.t.Errorf("%s: post %s is there, and taken for deleted", acct, id)
			case post.Boost == "" && !want.NoIndex && post.Edited.IsZero() && has.Text != post.Text:
				p.t.Errorf("%s: post %s: %q, want %q", acct, id, has.Text, post.Text)
			}
			posts++
		}
		for id, r := range had {
			if r.Deleted {
				tombstones++
				if post := truth.Posts[id]; post.Shown &&
					(post.Boost == "" || !wishes(truth.Accounts[truth.Posts[post.Boost].By])) {
					p.t.Errorf("%s: post %s is shown, and is taken for deleted", acct, id)
				}
			}
		}
	}
	return posts, tombstones
}

// A peer follows all people of a server, within the limits of the server. It fetches their
// profiles, all their posts and what they post meanwhile, their followings and followers.
func TestACommunityIsFollowedWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 5, People: racetest.Fewer(t, 40), Quiet: true,
			Limits: mastodontest.MastodonLimits()})
		p := newPeer(t, w, social.Options{Lists: true})
		p.start()
		users := w.Users()
		p.seed(accountKeys(t, users)...)
		time.Sleep(3 * 24 * time.Hour)
		truth := w.Truth()
		posts, _ := p.sameAsTruth(truth, time.Now().Add(-25*time.Hour))
		lists := 0
		for acct, want := range truth.Accounts {
			if !want.Local || wishes(want) {
				continue
			}
			rec, err := p.store.Archive.Record(accountKey(t, acct))
			if err != nil || rec.Kind != store.KindProfile || rec.Title != want.Name || rec.ID != want.ID {
				t.Errorf("profile of %s: %+v %v", acct, rec, err)
			}
			for name, members := range map[string][]string{"/followers": want.Followers, "/following": want.Following} {
				var keys []string
				for _, m := range members {
					keys = append(keys, string(accountKey(t, m)))
				}
				slices.Sort(keys)
				if got := p.edges(accountKey(t, acct) + partition.Key(name)); !slices.Equal(got, keys) {
					t.Errorf("%s%s: %d, want %d; gaps %+v", acct, name, len(got), len(keys),
						p.gaps(accountKey(t, acct)+partition.Key(name)))
				}
				lists++
			}
		}
		r := w.Report()
		if r.Refused != 0 || posts < 100 || lists < len(users) {
			t.Errorf("%d posts, %d lists; %+v", posts, lists, r)
		}
		t.Logf("%d people, %d posts, %d lists, %d requests: %v", len(users), posts, lists, r.Requests, r.ByPath)
		p.end()
	})
}

// An edited post is fetched again, a deleted post becomes a tombstone. An account that is suspended
// or moves costs no more calls.
func TestEditsDeletesAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 9, People: 12, Quiet: true, Rate: -1})
		p := newPeer(t, w, social.Options{})
		p.start()
		users := slices.DeleteFunc(w.Users(), func(u string) bool {
			return wishes(w.Truth().Accounts[u]) ||
				w.Truth().Accounts[u].NoIndex
		})
		who, gone, mover := users[0], users[1], users[2]
		id := func(id string, err error) string {
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		var ids []string
		for range 6 {
			ids = append(ids, id(w.Post(who, "bom dia a todos", "lisboa")))
			time.Sleep(time.Minute)
		}
		tag, err := tagKey("m.test", "lisboa")
		must(err)
		p.seed(accountKey(t, who), accountKey(t, gone), accountKey(t, mover), tag)
		time.Sleep(time.Hour)
		if n := len(p.posts(accountKey(t, who))); n != 6 {
			t.Fatalf("%d posts before, want 6", n)
		}
		must(w.Edit(ids[4], "boa tarde a todos"))
		must(w.Delete(ids[2]))
		must(w.Suspend(gone))
		must(w.Move(mover, users[3]))
		time.Sleep(52 * time.Hour)
		had := p.posts(accountKey(t, who))
		if r := had[ids[4]]; r.Text != "boa tarde a todos" || r.EditedAt == nil || len(r.Edits) != 1 {
			t.Errorf("edited: %+v", r)
		}
		if r := had[ids[2]]; !r.Deleted || r.Text != "" {
			t.Errorf("deleted: %+v", r)
		}
		if tagged := p.posts(tag); len(tagged) != 6 || tagged[ids[0]].By != accountKey(t, who) ||
			!tagged[ids[2]].Deleted {
			t.Errorf("tag: %+v", tagged)
		}
		if r, err := p.store.Archive.Record(accountKey(t, mover)); err != nil || r.MovedTo != accountKey(t, users[3]) {
			t.Errorf("moved: %+v %v", r, err)
		}
		if _, err := p.store.Archive.Record(accountKey(t, users[3])); err != nil {
			t.Errorf("who moved is not followed to where: %v", err)
		}
		for _, k := range []partition.Key{accountKey(t, gone), accountKey(t, mover)} {
			d, err := p.store.Queue.DueOf(k)
			if err != nil || d.At.Before(time.Now().Add(60*24*time.Hour)) {
				t.Errorf("%s costs a call at %s: %s %v", k, d.At, d.Reason, err)
			}
		}
		p.end()
	})
}

// A server such as snac: a deleted post is found by its id for a while, "not found" is an HTML
// page, and an edited post has another id. If many posts are deleted at once, each becomes a
// tombstone, and no other post does.
func TestSlowDeletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 9, People: 3, Quiet: true, Rate: -1, Lies: mastodontest.Lies{
			HTML404: true, EditRenames: true, IgnoresMin: true, IgnoresMax: true, IgnoresSince: true, NoPosts: true}})
		p := newPeer(t, w, social.Options{Most: time.Hour})
		p.start()
		who := slices.DeleteFunc(w.Users(), func(u string) bool {
			return wishes(w.Truth().Accounts[u]) ||
				w.Truth().Accounts[u].NoIndex
		})[0]
		k := accountKey(t, who)
		var ids []string
		for range 20 {
			id, err := w.Post(who, "bom dia a todos")
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
			time.Sleep(time.Minute)
		}
		p.seed(k)
		time.Sleep(2 * time.Hour)
		w.Lie(func(l *mastodontest.Lies) { l.Lingers = true })
		gone := map[string]bool{}
		// more than one visit asks for, and the newest
		for _, id := range slices.Concat(ids[2:12], ids[19:]) {
			gone[id] = true
			if err := w.Delete(id); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Edit(ids[15], "boa tarde a todos"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(40 * time.Minute)
		w.Lie(func(l *mastodontest.Lies) { l.Lingers = false })
		time.Sleep(12 * time.Hour)
		had := p.posts(k)
		if len(had) != len(ids) {
			t.Errorf("%d posts, want %d", len(had), len(ids))
		}
		for id, r := range had {
			if r.Deleted != gone[id] {
				t.Errorf("post %s: deleted %t, want %t", id, r.Deleted, gone[id])
			}
		}
		if r := had[ids[15]]; r.Text != "boa tarde a todos" {
			t.Errorf("changed: %q", r.Text)
		}
		p.end()
	})
}

func tagKey(host, tag string) (partition.Key, error) {
	return partition.ParseKey("mastodon:" + host + "/tag/" + tag)
}

// Faults of servers are in the ledger. A server that is down for a day loses nothing.
func TestGapsAreSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 3, People: 20, Quiet: true, Lies: mastodontest.Lies{EmptyLists: true}})
		p := newPeer(t, w, social.Options{Lists: true, TagBack: 40})
		p.start()
		var who string
		for _, u := range w.Users() {
			if a := w.Truth().Accounts[u]; !wishes(a) && len(a.Followers) > 0 && len(a.Posts) > 3 {
				who = u
				break
			}
		}
		k := accountKey(t, who)
		p.seed(k)
		time.Sleep(time.Hour)
		gaps := p.gaps(k + "/followers")
		if len(gaps) != 1 || gaps[0].What != store.GapIncomplete ||
			!strings.Contains(gaps[0].Reason, "empty-but-claimed") || gaps[0].Peer != "peer" {
			t.Errorf("a list that is empty: %+v", gaps)
		}
		w.Lie(func(l *mastodontest.Lies) { l.Down = 502 })
		time.Sleep(26 * time.Hour)
		down := p.gaps(k)
		if len(down) == 0 || down[len(down)-1].What != store.GapUnreachable {
			t.Errorf("a server that is down: %+v", down)
		}
		w.Lie(func(l *mastodontest.Lies) { l.Down = 0 })
		time.Sleep(3 * 24 * time.Hour)
		a, truth := w.Truth().Accounts[who], w.Truth()
		had := p.posts(k)
		for _, id := range a.Posts {
			if post := truth.Posts[id]; post.Created.Before(time.Now().Add(-25*time.Hour)) && had[id].Post == "" &&
				!wishes(truth.Accounts[truth.Posts[post.Boost].By]) {
				t.Errorf("post %s of %s is missing after the outage", id, truth.Posts[id].Created)
			}
		}
		p.end()
	})
}

// An account that is seeded while its server is down for a day is fetched when the server is back.
// The crawler gives up an attempt, not the account.
func TestWhoIsNamedDuringAnOutageIsHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 3, People: 8, Remote: -1, Quiet: true,
			Lies: mastodontest.Lies{Down: 502}})
		p := newPeer(t, w, social.Options{})
		p.start()
		p.seed(accountKeys(t, w.Users())...)
		time.Sleep(24 * time.Hour)
		w.Lie(func(l *mastodontest.Lies) { l.Down = 0 })
		time.Sleep(5 * 24 * time.Hour)
		if posts, _ := p.sameAsTruth(w.Truth(), time.Now().Add(-25*time.Hour)); posts < 10 {
			t.Errorf("%d posts", posts)
		}
		p.end()
	})
}

// forgetful is a server that says once of each account that it does not exist, as a server may
// while it moves data.
type forgetful struct {
	served
	mu   sync.Mutex
	said map[string]bool
}

func (f *forgetful) RoundTripper(from netip.Addr) http.RoundTripper {
	return forgets{f, f.served.RoundTripper(from)}
}

// first reports whether acct is asked for the first time.
func (f *forgetful) first(acct string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	said := f.said[acct]
	f.said[acct] = true
	return !said
}

type forgets struct {
	*forgetful
	next http.RoundTripper
}

func (f forgets) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/api/v1/accounts/lookup" && f.first(r.URL.Query().Get("acct")) {
		return &http.Response{StatusCode: http.StatusNotFound,
			Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
			Body: io.NopCloser(strings.NewReader(`{"error":"Record not found"}`))}, nil
	}
	return f.next.RoundTrip(r)
}

// An account that is not found is gone only when a second visit confirms it. An account that is
// missing from one answer is still followed.
func TestAbsenceWantsASecondLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 6, People: 12, Remote: -1, Quiet: true, Rate: -1})
		f := &forgetful{served: w, said: map[string]bool{}}
		p := newPeer(t, f, social.Options{})
		p.start()
		nobody := accountKey(t, "nobody@m.test")
		p.seed(append(accountKeys(t, w.Users()), nobody)...)
		time.Sleep(6 * time.Hour)
		for acct := range w.Truth().Accounts {
			if rec, err := p.store.Archive.Record(accountKey(t, acct)); err != nil || rec.Kind != store.KindProfile {
				t.Errorf("%s: %+v %v", acct, rec, err)
			}
		}
		if d, err := p.store.Queue.DueOf(nobody); err != nil || d.State != store.StateGone {
			t.Errorf("nobody: %+v %v", d, err)
		}
		if len(f.said) < 13 {
			t.Errorf("only %d were not found at first", len(f.said))
		}
		p.end()
	})
}
