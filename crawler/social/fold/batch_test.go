package fold

import (
	"errors"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/social/account"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

const ana, rui = partition.Key("mastodon:ana@m.test"), partition.Key("mastodon:rui@m.test")

func newBatch() *Batch {
	return New(ana, time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), "https://m.test/", account.State{},
		Options{Grows: true, Exclude: map[partition.Key]bool{"mastodon:out@m.test": true}, Media: true})
}

func post(id string, by account.Writer) account.Post {
	return account.Post{ID: id, By: by, Record: store.Record{Post: "https://m.test/" + id, Text: "hello",
		Raw: []byte("{}")}}
}

// If an author asks not to be collected, nothing of them is taken in, and stored posts are noted
// for removal.
func TestWhoOptsOutIsNotTakenIn(t *testing.T) {
	for _, c := range []struct {
		name string
		post account.Post
		own  bool // the account of the Key itself asks for it
		shun int
	}{
		{"the account", post("1", account.Writer{Key: ana, Wishes: []string{"#nobot"}}), true, 0},
		{"somebody else", post("1", account.Writer{Key: rui, Wishes: []string{"#noarchive"}}), false, 1},
		{"who is boosted", account.Post{ID: "1", By: account.Writer{Key: ana},
			Boosted: account.Writer{Key: rui, Wishes: []string{account.NotLoggedIn}}}, false, 1},
		{"a post that is not for all", account.Post{ID: "1", By: account.Writer{Key: ana}, Closed: true}, false, 0},
	} {
		b := newBatch()
		b.Take(c.post)
		if len(b.Posts) != 0 || len(b.Unwilling) != 1 || (b.Wish != "") != c.own || len(b.State.Shunned) != c.shun {
			t.Errorf("%s: %d posts, %d unwanted, wish %q, %d shunned", c.name, len(b.Posts), len(b.Unwilling), b.Wish,
				len(b.State.Shunned))
		}
	}
}

// Posts of an author who only opts out of search are stored without text.
func TestWhoIsNotToBeFoundHasNoText(t *testing.T) {
	b := newBatch()
	b.Take(post("1", account.Writer{Key: ana, NoIndex: true}))
	boost := post("2", account.Writer{Key: ana})
	boost.Record.BoostOf, boost.Boosted = "https://m.test/0", account.Writer{Key: rui, NoIndex: true}
	b.Take(boost)
	if len(b.Posts) != 2 {
		t.Fatalf("%d posts", len(b.Posts))
	}
	for _, r := range b.Posts {
		if r.Text != "" || r.Raw != nil {
			t.Errorf("%s has text %q and %d bytes of its source", r.Post, r.Text, len(r.Raw))
		}
	}
}

// A post becomes a part of its fetch, and leads to each other account once.
func TestAPostIsTakenIn(t *testing.T) {
	b := newBatch()
	p := post("2", account.Writer{Key: rui})
	p.ReplyTo, p.Record.InReplyTo = "1", "id:1"
	p.Lead(ana, "mention") // the account itself
	p.Lead("mastodon:out@m.test", "mention")
	p.Lead("bluesky:did:plc:x", "mention") // of another service
	p.Lead(rui, "reply")
	b.Take(post("1", account.Writer{Key: ana}), p)
	if len(b.Posts) != 2 || b.New != 2 || len(b.Novel) != 2 {
		t.Fatalf("%d posts, %d new, %d novel", len(b.Posts), b.New, len(b.Novel))
	}
	r := b.Posts[1]
	if r.Key != ana || r.By != rui || r.Kind != store.KindPost || r.Source != "mastodon" ||
		r.URL != "https://m.test/" || r.InReplyTo != "https://m.test/1" {
		t.Errorf("%+v", r)
	}
	if len(b.Links) != 1 || b.Links[0] != (store.Link{Key: rui, Rel: "author"}) {
		t.Errorf("links %+v", b.Links)
	}
	again := post("2", account.Writer{Key: rui})
	again.Same = true
	if b.Take(again); len(b.Posts) != 2 {
		t.Error("a post that is as it was is written again")
	}
	b.Looking = map[string]*store.Record{r.Post: &r}
	b.Take(post("3", account.Writer{Key: ana}))
	if len(b.Posts) != 3 || b.New != 2 {
		t.Errorf("%d posts, %d new, when an old one is looked at", len(b.Posts), b.New)
	}
}

// A list that is read to judge an account makes no candidates.
func TestApartNobodyIsACandidate(t *testing.T) {
	b := newBatch()
	b.Apart = true
	if b.Candidate(rui, "followers"); len(b.Links) != 0 {
		t.Errorf("links %+v", b.Links)
	}
	b.Apart = false
	if b.Candidate(rui, "followers"); len(b.Links) != 1 {
		t.Errorf("links %+v", b.Links)
	}
}

// The row of an outage grows, and says when the missed posts have been read.
func TestAnOutageIsOneRow(t *testing.T) {
	b := newBatch()
	b.Down("no answer")
	from := b.Gaps[0].From
	later := New(ana, b.now.Add(time.Hour), "", b.State, Options{})
	if later.Down("no answer"); !later.Gaps[0].From.Equal(from) || later.State.Outage.To.Equal(from) {
		t.Errorf("%+v after %+v", later.Gaps, b.Gaps)
	}
	end := New(ana, later.now.Add(time.Hour), "", later.State, Options{})
	end.State.Visited, end.Next = end.now, store.Next{State: store.StateDone}
	if end.Reached(); len(end.Gaps) != 1 || !end.Gaps[0].ReadAt.Equal(end.now) || !end.State.Outage.From.IsZero() {
		t.Errorf("%+v, outage %+v", end.Gaps, end.State.Outage)
	}
}

// An account is gone when its API says so a second time.
func TestMissingTwiceIsGone(t *testing.T) {
	b := newBatch()
	no := errors.New("no such account")
	if b.Missing(true, no); b.Next.State != store.StatePending {
		t.Errorf("once: %+v", b.Next)
	}
	if b.Missing(true, no); b.Next.State != store.StateGone || len(b.Gaps) != 1 {
		t.Errorf("twice: %+v, gaps %+v", b.Next, b.Gaps)
	}
}
