package social_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler"
	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/crawltest/storytest"
	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/crawler/web"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// picture returns bytes of that size that look like a PNG.
func picture(text string, size int) []byte {
	return append([]byte("\x89PNG\x0D\x0A\x1A\x0A"+text), bytes.Repeat([]byte{0}, max(size-8-len(text), 0))...)
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// withFiles makes p fetch files of at most max bytes from there.
func withFiles(t *testing.T, p *peer, files *storytest.Files, max int64, hosts map[string]netip.Addr) {
	t.Helper()
	open := &fetch.Share{Ask: func(_ netip.Addr, gap time.Duration,
		_ time.Time) fetch.Leave {
		return fetch.Leave{Gap: gap}
	}, Done: func(netip.Addr, fetch.Visit, time.Time) {}}
	client, err := fetch.New(fetch.Options{Transport: files, Hosts: hosts, Share: open, Contact: "test@echo.example",
		AllowNet: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}})
	if err != nil {
		t.Fatal(err)
	}
	src, err := web.New(web.Options{Client: client, MaxFile: max, Unjudged: true})
	if err != nil {
		t.Fatal(err)
	}
	p.more, p.o.Media = []crawler.Source{src}, true
}

// file returns what the store has of one of k's files.
func (p *peer) file(k partition.Key, url string) (state store.State, reason string, body []byte) {
	p.t.Helper()
	f, err := k.File(url)
	if err != nil {
		p.t.Fatal(err)
	}
	d, err := p.store.Queue.DueIn(0, f)
	if err != nil {
		return 0, err.Error(), nil
	}
	if err := p.store.Archive.Captures(0, f, nil, func(_ []byte, c store.Capture) (bool, error) {
		body = c.Body
		return true,
			nil
	}); err != nil {
		p.t.Fatal(err)
	}
	return d.State, d.Reason, body
}

// Files of followed accounts are fetched once, politely, and each limit that applies is named. They
// are removed when the post that names them is deleted or its author wants it.
func TestFilesOfAccountsAreHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 3, People: 6, Remote: -1, Quiet: true})
		users := w.Users()
		ana, bob := accountKey(t, users[0]), accountKey(t, users[1])
		for _, u := range users[:2] {
			if err := w.Describe(u, "about me"); err != nil {
				t.Fatal(err)
			}
		}
		files := &storytest.Files{}
		same, other := picture("same", 100), picture("other", 200)
		files.Put("https://cdn.example/a.png", "image/png", same)
		files.Put("https://cdn.example/copy.png", "image/png", same)
		files.Put("https://cdn.example/b.png", "application/octet-stream", other)
		files.Put("https://cdn.example/large.png", "image/png", picture("large", 3000))
		files.Answer("https://cdn.example/chunked.png", 200,
			http.Header{"Content-Type": {"image/png"}, "Content-Length": {"?"}}, picture("chunked", 3000))
		files.Put("https://cdn.example/page", "text/html", []byte("<p>log in</p>"))
		files.Put("https://cdn.example/lie.png", "application/octet-stream", []byte("<html>not a picture</html>"))
		files.Answer("https://cdn.example/kept.png", 200,
			http.Header{"Content-Type": {"image/png"}, "X-Robots-Tag": {"noarchive"}}, same)
		files.Answer("https://cdn.example/moved.png", 302, http.Header{"Location": {"https://far.example/moved.png"}},
			nil)
		files.Put("https://far.example/moved.png", "image/png", picture("moved", 50))
		files.Answer("https://cdn.example/round.png", 302, http.Header{"Location": {"https://cdn.example/round2.png"}},
			nil)
		files.Answer("https://cdn.example/round2.png", 302, http.Header{"Location": {"https://cdn.example/round3.png"}},
			nil)
		files.Put("https://shut.example/robots.txt", "text/plain", []byte("User-agent: *\nDisallow: /\n"))
		files.Put("https://shut.example/x.png", "image/png", same)
		files.Put("https://inside.example/x.png", "image/png", same)

		post := func(who, text string, urls ...string) string {
			id, err := w.Post(who, text)
			if err == nil {
				err = w.Attach(id, urls...)
			}
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		first := post(users[0], "first", "https://cdn.example/a.png", "https://cdn.example/copy.png",
			"https://cdn.example/b.png")
		again := post(users[0], "again", "https://cdn.example/b.png")
		odd := post(users[0], "odd", "https://cdn.example/large.png", "https://cdn.example/chunked.png",
			"https://cdn.example/page", "https://cdn.example/lie.png", "https://cdn.example/none.png",
			"https://cdn.example/kept.png", "https://shut.example/x.png", "https://inside.example/x.png",
			"https://cdn.example/moved.png", "https://cdn.example/round.png")
		bobs := post(users[1], "bob's", "https://cdn.example/a.png")

		p := newPeer(t, w, social.Options{})
		withFiles(t, p, files, 2000, map[string]netip.Addr{"cdn.example": netip.MustParseAddr("198.51.100.1"),
			"far.example":  netip.MustParseAddr("198.51.100.2"),
			"shut.example": netip.MustParseAddr("198.51.100.3"), "inside.example": netip.MustParseAddr("10.0.0.1"),
			"m.test": netip.MustParseAddr("198.51.100.4")})
		p.start()
		p.seed(ana, bob)
		time.Sleep(12 * time.Hour)

		is := func(k partition.Key, url string, state store.State, reason string, body []byte) {
			t.Helper()
			if s, why, b := p.file(k, url); s != state || why != reason || !bytes.Equal(b, body) {
				t.Errorf("%s of %s: state %d, %q, %d bytes; want %d, %q, %d", url, k, s, why, len(b), state, reason,
					len(body))
			}
		}
		cdn := func(name string) string { return "https://cdn.example/" + name }
		is(ana, cdn("a.png"), store.StateDone, "", same)
		is(ana, cdn("copy.png"), store.StateDone, "", same)
		is(ana, cdn("b.png"), store.StateDone, "", other)
		is(bob, cdn("a.png"), store.StateDone, "", same)
		is(ana, cdn("large.png"), store.StateRefused, "a file of 3000 bytes, at most 2000", nil)
		is(ana, cdn("chunked.png"), store.StateRefused, "a file over 2000 bytes", nil)
		is(ana, cdn("page"), store.StateRefused, "status 200, text/html: no file", nil)
		is(ana, cdn("lie.png"), store.StateRefused, "status 200, text/html: no file", nil)
		is(ana, cdn("kept.png"), store.StateRefused, "its site asks that it is not kept", nil)
		is(ana, cdn("none.png"), store.StateGone, "status 404", nil)
		is(ana, "https://shut.example/x.png", store.StateRefused, "robots", nil)
		for url, want := range map[string]string{"https://shut.example/x.png": "skipped a file: robots",
			cdn("none.png"):  "expired a file: status 404",
			cdn("large.png"): "skipped a file: a file of 3000 bytes, at most 2000", cdn("a.png"): ""} {
			f, err := ana.File(url)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, g := range p.gaps(f) {
				if got += g.What + " " + g.Reason; g.About != ana {
					t.Errorf("the gap of %s is about %s", url, g.About)
				}
			}
			if got != want {
				t.Errorf("%s: the ledger says %q, want %q", url, got, want)
			}
		}
		is(ana, "https://far.example/moved.png", store.StateDone, "", picture("moved", 50))
		is(ana, cdn("round2.png"), store.StateRefused, "status 302 to nowhere, or a second time", nil)
		if s, why, _ := p.file(ana, "https://inside.example/x.png"); s != store.StateRefused ||
			files.Asked("https://inside.example/x.png")+files.Asked("https://inside.example/robots.txt") != 0 {
			t.Errorf("a file at a private address: state %d, %q", s, why)
		}
		for _, name := range []string{"b.png", "large.png", "page", "moved.png"} {
			if n := files.Asked(cdn(name)); n != 1 {
				t.Errorf("%s was asked for %d times", name, n)
			}
		}
		f, err := ana.File(cdn("b.png"))
		if err != nil {
			t.Fatal(err)
		}
		if r, err := p.store.Archive.Record(f); err != nil || r.Kind != store.KindMedia || r.MediaType != "image/png" ||
			r.Size != 200 || r.Digest != sumOf(other) || r.URL != cdn("b.png") || r.Status != 200 {
			t.Errorf("the record of a file: %+v, %v", r, err)
		}
		if gap, ok := files.LeastGap("cdn.example"); !ok || gap < time.Second {
			t.Errorf("the host of the files was asked again after %v", gap)
		}
		for stop, n := range map[string]int64{"media-size": 2, "media-type": 2, "noarchive": 1, "robots": 1} {
			if got := p.crawler.Stats().Stops[stop]; got != n {
				t.Errorf("stopped %d times by %s, want %d", got, stop, n)
			}
		}
		if st := p.store.Stats(); st.Files != 5 || st.FileBytes != 100*3+200+50 {
			t.Errorf("%d files of %d bytes are counted", st.Files, st.FileBytes)
		}
		names := func(k partition.Key, id string) (out []string) {
			for _, m := range p.posts(k)[id].Media {
				out = append(out, m.Digest)
			}
			return out
		}
		if got := names(ana, first); len(got) != 3 || got[0] != sumOf(same) || got[1] != sumOf(same) ||
			got[2] != sumOf(other) {
			t.Errorf("the post names %v", got)
		}
		if got := names(ana, odd); len(got) != 10 || got[0] != "" || got[8] != sumOf(picture("moved", 50)) {
			t.Errorf("the odd post names %v", got)
		}

		for _, id := range []string{first, odd} {
			if err := w.Delete(id); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * 24 * time.Hour)
		if !p.posts(ana)[first].Deleted {
			t.Fatal("the deletion was not seen")
		}
		is(ana, cdn("a.png"), store.StateGone, "withdrawn", nil)
		is(ana, cdn("copy.png"), store.StateGone, "withdrawn", nil)
		is(ana, cdn("b.png"), store.StateDone, "", other) // another post has it
		is(ana, cdn("large.png"), store.StateGone, "withdrawn", nil)
		is(ana, cdn("moved.png"), store.StateGone, "withdrawn", nil)
		is(ana, "https://far.example/moved.png", store.StateGone, "withdrawn", nil)
		is(bob, cdn("a.png"), store.StateDone, "", same) // bob uses it, too
		if got := names(ana, again); len(got) != 1 || got[0] != sumOf(other) {
			t.Errorf("the post that stays names %v", got)
		}

		p.crash() // and nothing of it comes back
		if err := w.Describe(users[1], "please do not #nobot"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * 24 * time.Hour)
		is(bob, cdn("a.png"), store.StateGone, "withdrawn", nil)
		is(ana, cdn("a.png"), store.StateGone, "withdrawn", nil)
		if r := p.posts(bob)[bobs]; !r.Deleted || len(r.Media) > 0 {
			t.Errorf("the post of someone who opted out: %+v", r)
		}
		if st := p.store.Stats(); st.Files != 1 || st.FileBytes != 200 {
			t.Errorf("%d files of %d bytes are left", st.Files, st.FileBytes)
		}
		p.end()
	})
}

// Without Options.Media no file is fetched. A file that another peer was to fetch waits.
func TestNoFilesUnlessAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 3, People: 6, Remote: -1, Quiet: true})
		ana := accountKey(t, w.Users()[0])
		if err := w.Describe(w.Users()[0], "about me"); err != nil {
			t.Fatal(err)
		}
		files := &storytest.Files{}
		files.Put("https://cdn.example/a.png", "image/png", picture("a", 9))
		look := func() {
			t.Helper()
			id, err := w.Post(w.Users()[0], "look")
			if err == nil {
				err = w.Attach(id, "https://cdn.example/a.png")
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		look()
		p := newPeer(t, w, social.Options{})
		hosts := map[string]netip.Addr{"cdn.example": netip.MustParseAddr("198.51.100.1"),
			"m.test": netip.MustParseAddr("198.51.100.4")}
		withFiles(t, p, files, 0, hosts)
		p.o.Media = false
		p.start()
		p.seed(ana)
		time.Sleep(time.Hour)
		if s, _, _ := p.file(ana, "https://cdn.example/a.png"); s != 0 || len(p.posts(ana)) == 0 {
			t.Errorf("a file that nobody asked for: state %d", s)
		}
		p.stop()
		_ = p.store.Close()
		p.o.Media = true
		look() // of posts that are read from now on
		p.start()
		time.Sleep(2 * 24 * time.Hour)
		if s, why, _ := p.file(ana, "https://cdn.example/a.png"); s != store.StateDone ||
			why != "this peer fetches no files of accounts" || files.Asked("https://cdn.example/a.png") != 0 {
			t.Errorf("at a peer that fetches none: state %d, %q", s, why)
		}
		p.stop()
		_ = p.store.Close()
		withFiles(t, p, files, 1000, hosts)
		p.start()
		time.Sleep(2 * 24 * time.Hour)
		if s, _, body := p.file(ana, "https://cdn.example/a.png"); s != store.StateDone || len(body) == 0 {
			t.Errorf("at a peer that does: state %d, %d bytes", s, len(body))
		}
		p.end()
	})
}
