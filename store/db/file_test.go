package db

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

func mediaURL(name string) string { return "https://files.example/" + name }

func fileKey(t tb, k partition.Key, name string) partition.Key {
	t.Helper()
	f, err := k.File(mediaURL(name))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return f
}

// naming makes r name those files.
func naming(r store.Record, names ...string) store.Record {
	r.Media = nil
	for _, n := range names {
		r.Media = append(r.Media, store.Media{Type: "image", URL: mediaURL(n)})
	}
	return r
}

// wanting returns c with links to the files that its posts and record name.
func wanting(c store.Commit) store.Commit {
	add := func(r *store.Record) {
		for _, m := range r.Media {
			if k, ok := m.File(c.Key); ok && r.Archived() && !r.Deleted {
				c.Links = append(c.Links, store.Admission{Key: k, Referrer: c.Key, Depth: 1})
			}
		}
	}
	for i := range c.Posts {
		add(&c.Posts[i])
	}
	if c.Record != nil {
		add(c.Record)
	}
	return c
}

// fetched returns the commit of a file with that body.
func fetched(k partition.Key, body string, at time.Time) store.Commit {
	r := record(k, body, at)
	r.Kind, r.Text, r.Size = store.KindMedia, "", int64(len(body))
	return captured(store.Commit{Key: k, Now: at, Record: r, Next: store.Next{State: store.StateDone}}, body)
}

// bodiesOf returns the number of bodies in s, and of captures of files.
func bodiesOf(t tb, s *Store) (bodies, captures int) {
	t.Helper()
	for tab, n := range map[format.Table]*int{format.TabBody: &bodies, format.TabCapture: &captures} {
		err := s.engine.Scan([]byte{byte(tab)}, []byte{byte(tab) + 1}, func(key, _ []byte) (bool, error) {
			if tab == format.TabBody || format.OfFile(key[9:]) {
				*n++
			}
			return true, nil
		})
		if err != nil {
			t.Fatalf("%v", err)
		}
	}
	return bodies, captures
}

// TestFilesAreWithdrawn: a file stays as long as its account names it. A body stays as long as a
// file has it.
func TestFilesAreWithdrawn(t *testing.T) {
	s := newStore(t)
	k := account(1)
	admit(t, s, k)
	at := epoch()
	step := func(c store.Commit) {
		t.Helper()
		at = at.Add(time.Minute)
		c.Key, c.Now = k, at
		for i := range c.Posts {
			c.Posts[i].FetchedAt = at
		}
		if c.Next.State == 0 {
			c.Next.State = store.StateDone
		}
		if c.Record != nil {
			c.Record.FetchedAt, c.Record.Kind = at, store.KindProfile
		}
		commit(t, s, wanting(c))
		audit(t, s)
	}
	profile := func(names ...string) *store.Record {
		r := naming(*record(k, fmt.Sprint("profile", names), at), names...)
		return &r
	}
	state := func(name string) string {
		t.Helper()
		f := fileKey(t, k, name)
		d, err := s.Queue.DueIn(0, f)
		if err != nil {
			return "unknown"
		}
		_, err = s.Archive.Record(f)
		return fmt.Sprint(d.State, d.Reason, err == nil)
	}
	have := func(files, size int64, bodies int) {
		t.Helper()
		st := s.Stats()
		if b, c := bodiesOf(t, s); st.Files != files || st.FileBytes != size || b != bodies || c != int(files) {
			t.Errorf("%d files of %d bytes, %d bodies, %d captures; want %d of %d, %d", st.Files, st.FileBytes, b, c,
				files, size, bodies)
		}
	}
	step(store.Commit{Record: profile("face"), Posts: []store.Record{naming(postOf(k, 1, "one", at), "a", "b"),
		naming(postOf(k, 2, "two", at), "a")}})
	for name, body := range map[string]string{"a": "same", "b": "other", "face": "same"} {
		commit(t, s, fetched(fileKey(t, k, name), body, at))
	}
	have(3, 13, 2)
	if r := onePost(t, s, k, 1); r.Media[0].Digest != "sha256:same" || r.Media[1].Digest != "sha256:other" {
		t.Errorf("the post does not name what was had: %+v", r.Media)
	}
	if r, err := s.Archive.Record(k); err != nil || r.Media[0].Digest != "sha256:same" {
		t.Errorf("the profile does not name what was had: %+v, %v", r.Media, err)
	}

	gone := func(n int) store.Commit { return store.Commit{Posts: []store.Record{tombstone(k, n, at)}} }
	step(gone(1))
	have(2, 8, 1) // a is in the other post
	if got := state("b"); got != "3withdrawnfalse" {
		t.Errorf("b is %s", got)
	}
	if err := s.Commit(fetched(fileKey(t, k, "b"), "late", at)); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("an exchange that was under way was taken: %v", err)
	}
	// Nothing names a any more, and b is named again.
	step(store.Commit{Posts: []store.Record{naming(postOf(k, 2, "edited", at), "b")}})
	have(1, 4, 1)
	if a, b := state("a"), state("b"); a != "3withdrawnfalse" || b != "1false" {
		t.Errorf("a is %s, b %s", a, b)
	}
	commit(t, s, fetched(fileKey(t, k, "b"), "again", at.Add(time.Second)))
	step(store.Commit{Record: profile("other face")})
	have(1, 5, 1)
	old := profile("other face")
	old.NoArchive = true
	step(store.Commit{Record: old})
	have(0, 0, 0)
	step(store.Commit{Record: profile("other face"), Posts: []store.Record{naming(postOf(k, 2, "edited", at), "b")}})
	commit(t, s, fetched(fileKey(t, k, "b"), "again", at.Add(time.Second)))
	have(1, 5, 1)
	step(store.Commit{Next: store.Next{State: store.StateGone, Reason: "gone"}})
	have(0, 0, 0)
	if r := onePost(t, s, k, 2); r.Media[0].Digest != "" {
		t.Errorf("the post names what is not there: %+v", r.Media)
	}
}

// TestFilesAreAdmittedByTheirAccount: only the account can make a peer fetch a file.
func TestFilesAreAdmittedByTheirAccount(t *testing.T) {
	s := newStore(t)
	k := account(1)
	admit(t, s, k, account(2), key("a.example", 1))
	f := fileKey(t, k, "a")
	if got := admit(t, s, f); got[0] != store.Refused {
		t.Errorf("a seed, or another peer's link, to a file: %v", got)
	}
	link := []store.Admission{{Key: f, Referrer: k, Depth: 1}}
	post := naming(postOf(k, 1, "one", epoch()), "b")
	commit(t, s, store.Commit{Key: k, Now: epoch(), Next: store.Next{State: store.StateDone}, Links: link,
		Posts: []store.Record{post}})
	other := naming(postOf(account(2), 1, "one", epoch()), "a")
	commit(t, s, store.Commit{Key: account(2), Now: epoch(), Next: store.Next{State: store.StateDone}, Links: link,
		Posts: []store.Record{other}})
	commit(t, s, store.Commit{Key: key("a.example", 1), Now: epoch(), Next: store.Next{State: store.StateDone},
		Links: link})
	if _, err := s.Queue.DueIn(0, f); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("a file was admitted that its account does not name: %v", err)
	}
	commit(t, s, wanting(store.Commit{Key: k, Now: epoch().Add(time.Hour), Next: store.Next{State: store.StateDone},
		Posts: []store.Record{naming(postOf(k, 2, "two", epoch()), "a")}}))
	if d, err := s.Queue.DueIn(0, f); err != nil || d.State != store.StatePending {
		t.Errorf("a file that a post names: %+v, %v", d, err)
	}
	card := store.Media{Type: "link", URL: mediaURL("page")}
	if k, ok := card.File(k); ok {
		t.Errorf("a card of a page is a file: %s", k)
	}
}

// TestFilesOfRedirects: the target of a file's redirect is withdrawn with the file.
func TestFilesOfRedirects(t *testing.T) {
	s := newStore(t)
	k := account(1)
	admit(t, s, k)
	commit(t, s, wanting(store.Commit{Key: k, Now: epoch(), Next: store.Next{State: store.StateDone},
		Posts: []store.Record{naming(postOf(k, 1, "one", epoch()), "a")}}))
	a, b := fileKey(t, k, "a"), fileKey(t, k, "b")
	c := fetched(a, "moved", epoch())
	c.Record.Digest, c.Record.Redirect, c.Record.Status, c.Capture = "", b, 302, nil
	c.Links = []store.Admission{{Key: b, Referrer: a, Depth: 1}}
	commit(t, s, c)
	commit(t, s, fetched(b, "body", epoch()))
	if r := onePost(t, s, k, 1); r.Media[0].Digest != "sha256:body" || s.Stats().Files != 1 {
		t.Errorf("a file behind a redirect: %+v, %+v", r.Media, s.Stats())
	}
	bring(t, s, k, epoch().Add(time.Hour), tombstone(k, 1, epoch().Add(time.Hour)))
	if bodies, captures := bodiesOf(t, s); bodies+captures != 0 || s.Stats().Files != 0 {
		t.Errorf("left behind a redirect: %d bodies, %d captures", bodies, captures)
	}
	audit(t, s)
}

// TestFilesOfLivingPosts: posts, profile and account change at random, and rows come in any order.
// A replica has a file only while a living post or the profile names it, and all replicas have the
// same files (I3, I6).
func TestFilesOfLivingPosts(t *testing.T) {
	names := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		owner, follower, importer := create(t, memOptions().FS), create(t, memOptions().FS), create(t, memOptions().FS)
		for _, s := range []*Store{owner, follower, importer} {
			defer closeStore(t, s)
		}
		k := account(0)
		sl := owner.SliceOf(k)
		owner.Log.SetLogged(true, sl)
		admit(t, owner, k)
		for n := range rapid.IntRange(1, 12).Draw(t, "steps") {
			at := epoch().Add(time.Duration(n) * time.Minute)
			if name := rapid.SampledFrom(append(names, "")).Draw(t, "fetch"); name != "" {
				err := owner.Commit(fetched(fileKey(t, k, name), rapid.SampledFrom([]string{"x", "y"}).Draw(t, "body"),
					at))
				if err != nil && !errors.Is(err, store.ErrNotExist) {
					t.Fatal(err)
				}
			} else {
				commit(t, owner, drawNaming(t, k, names, at))
			}
			if rapid.Bool().Draw(t, "ship") {
				follow(t, owner, follower, sl)
			}
			if rapid.IntRange(0, 3).Draw(t, "copy") == 0 { // rows of now, which meet later ones
				if err := importer.Log.ImportRows(sl, sliceRows(t, owner, sl, 1<<20)); err != nil {
					t.Fatal(err)
				}
			}
			onlyNamed(t, owner, k, names)
		}
		follow(t, owner, follower, sl)
		if err := importer.Log.ImportRows(sl, rapid.Permutation(sliceRows(t, owner, sl, 1<<20)).Draw(t,
			"order")); err != nil {
			t.Fatal(err)
		}
		for name, s := range map[string]*Store{"owner": owner, "follower": follower, "importer": importer} {
			if name != "importer" { // an older row of the profile's visits stays there: ImportRows
				sameSlice(t, owner, s, sl)
			}
			onlyNamed(t, s, k, names)
			audit(t, s)
			if o, f := owner.Stats(), s.Stats(); o.Files != f.Files || o.FileBytes != f.FileBytes {
				t.Fatalf("%s: %d files of %d bytes, the owner %d of %d", name, f.Files, f.FileBytes, o.Files,
					o.FileBytes)
			}
		}
		if err := follower.Log.DropSlice(sl); err != nil {
			t.Fatal(err)
		}
		if st := follower.Stats(); st.Files != 0 || st.FileBytes != 0 {
			t.Fatalf("%d files of %d bytes are counted of a dropped slice", st.Files, st.FileBytes)
		}
	})
}

// drawNaming draws a commit of the account k, whose posts and profile may name files.
func drawNaming(t *rapid.T, k partition.Key, names []string, at time.Time) store.Commit {
	some := func() []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 2, rapid.ID).Draw(t, "names")
	}
	c := store.Commit{Key: k, Now: at,
		Next: store.Next{State: rapid.SampledFrom([]store.State{store.StateDone, store.StateDone, store.StateDone,
			store.StateGone}).Draw(t, "state")}}
	for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 2), 0, 2, rapid.ID).Draw(t, "posts") {
		r := naming(postOf(k, n, "text", at), some()...)
		switch rapid.IntRange(0, 5).Draw(t, "fate") {
		case 0:
			r = tombstone(k, n, at)
		case 1:
			r.NoIndex = true
		}
		c.Posts = append(c.Posts, r)
	}
	if rapid.IntRange(0, 2).Draw(t, "profile") == 0 {
		r := naming(*record(k, "profile", at), some()...)
		r.Kind, r.NoArchive = store.KindProfile, rapid.IntRange(0, 3).Draw(t, "wish") == 0
		c.Record = &r
	}
	if c.Next.State == store.StateGone {
		return c
	}
	return wanting(c)
}

// onlyNamed checks that s has nothing of a file that is not named, and one exchange of each other
// file.
func onlyNamed(t tb, s *Store, k partition.Key, names []string) {
	t.Helper()
	var named []partition.Key
	add := func(r *store.Record) { r.Files(func(k partition.Key) { named = append(named, k) }) }
	err := s.Accounts.Posts(0, k, "", func(r store.Record) (bool, error) { add(&r); return true, nil })
	if r, rerr := s.Archive.Record(k); rerr == nil {
		add(&r)
	} else if !errors.Is(rerr, store.ErrNotExist) {
		t.Fatalf("%v", rerr)
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	for _, n := range names {
		f := fileKey(t, k, n)
		captures := 0
		err := s.Archive.Captures(0, f, nil, func([]byte, store.Capture) (bool, error) { captures++; return true, nil })
		if err != nil {
			t.Fatalf("%v", err)
		}
		if captures > 1 {
			t.Errorf("%s has %d captures", f, captures)
		}
		_, err = s.Archive.Record(f)
		if there := err == nil || captures > 0; there && !slices.Contains(named, f) {
			t.Errorf("%s is kept (%d captures), and nothing names it: %s", f, captures, cmp.Diff(named, nil))
		}
	}
}
