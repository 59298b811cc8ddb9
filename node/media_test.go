package node_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/crawltest/storytest"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/node"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/nodetest"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
)

// besideFiles answers for the host of files and passes other requests to a service.
type besideFiles struct {
	files   *storytest.Files
	service http.RoundTripper
}

func (b besideFiles) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Hostname() == "cdn.test" {
		return b.files.RoundTrip(r)
	}
	return b.service.RoundTrip(r)
}

// Three peers share the accounts of a server and the files that their posts name. Each file is
// stored once, and every peer and every export finds it. It stays when its owner dies. It is
// deleted with its post, whichever peer owns it then.
func TestFilesOfAccountsInASwarm(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	w, err := mastodontest.New(mastodontest.Options{Seed: 4, People: 12, Remote: -1, Quiet: true, Domain: "m.test"})
	if err != nil {
		t.Fatal(err)
	}
	files := &storytest.Files{}
	home := netip.MustParseAddr("127.0.0.1")
	s := nodetest.New(t, nodetest.Options{World: smallWorld(),
		Node: node.Options{SliceBits: 6, Fanout: 16, Media: 1 << 20, KeepBodies: false},
		Each: func(n int, o *node.Options) {
			from := netip.AddrFrom4([4]byte{127, 0, 0, byte(11 + n)})
			o.Transport, o.Hosts = besideFiles{files, w.RoundTripper(from)},
				map[string]netip.Addr{"m.test": home, "cdn.test": netip.MustParseAddr("127.77.9.1")}
			o.Social = social.Options{Least: time.Second, Most: time.Second}
		}})
	var accounts []partition.Key
	urls, ids, bodies := map[partition.Key]string{}, []string{}, map[string][]byte{}
	for u, a := range w.Truth().Accounts {
		if !a.Local || a.NoIndex || a.Suspended || a.Moved != "" {
			continue
		}
		k := accountOf(t, u)
		at := fmt.Sprintf("https://cdn.test/%d.png", len(accounts))
		body := append([]byte("\x89PNG\x0D\x0A\x1A\x0A"), u...)
		files.Put(at, "image/png", body)
		id, err := w.Post(u, "look at this")
		for _, do := range []func() error{func() error { return w.Describe(u, "about me") },
			func() error { return w.Attach(id, at) }} {
			if err == nil {
				err = do()
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		accounts, ids = append(accounts, k), append(ids, id)
		urls[k], bodies[at] = at, body
	}
	for range 3 {
		s.Add()
	}
	s.Settle(3)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := s.Peers[0].SeedUntilDone(ctx, accounts); err != nil {
		t.Fatal(err)
	}
	all := func(from *nodetest.Peer, state, why string) func() (bool, string) {
		return func() (bool, string) {
			for _, k := range accounts {
				f, err := k.File(urls[k])
				if err != nil {
					t.Fatal(err)
				}
				shown, err := from.API().Show(ctx, f)
				if err != nil || shown.State != state || shown.Why != why ||
					(shown.Record != nil) != (state == "done") {
					return false, fmt.Sprintf("%s: %s %s %v %v", f, shown.State, shown.Why, shown.Record, err)
				}
			}
			return true, ""
		}
	}
	s.Until("all files are had", time.Minute, all(s.Peers[1], "done", ""))
	for at := range bodies {
		if n := files.Asked(at); n != 1 {
			t.Errorf("%s was asked for %d times", at, n)
		}
	}
	exported := func(from *nodetest.Peer) (posts, captured int, missing []api.Missing) {
		t.Helper()
		missing, err := from.Search().Export(ctx, api.Export{Captures: true, Kind: store.KindMedia},
			func(r store.Record, _ string) error {
				for _, c := range r.Captures {
					if bytes.Equal(c.Body, bodies[r.URL]) && len(c.Response) > 0 {
						captured++
					}
				}
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
		_, err = from.Search().Export(ctx, api.Export{Kind: store.KindPost}, func(r store.Record, _ string) error {
			for _, m := range r.Media {
				if sum := sha256.Sum256(bodies[m.URL]); m.Digest == "sha256:"+hex.EncodeToString(sum[:]) {
					posts++
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return posts, captured, missing
	}
	if posts, captured, missing := exported(s.Peers[1]); posts != len(accounts) || captured != len(accounts) ||
		len(missing) > 0 {
		t.Errorf("exported: %d posts with the digest of their file and %d files, want %d; %v", posts, captured,
			len(accounts), missing)
	}
	count := func() (n, size int64) {
		for _, p := range s.Peers[:2] {
			st := p.Status()
			n, size = n+st.Media, size+st.MediaBytes
		}
		return n, size
	}

	if err := s.Peers[2].Stop(); err != nil {
		t.Fatal(err)
	}
	s.Until("the files outlive an owner", 2*time.Minute, func() (bool, string) {
		n, _ := count()
		posts, captured, _ := exported(s.Peers[0])
		ok, why := all(s.Peers[0], "done", "")()
		return ok && n == int64(len(accounts)) && posts == len(accounts) && captured == len(accounts),
			fmt.Sprint(n, " ", posts, " ", captured, " ", why)
	})
	for _, id := range ids {
		if err := w.Delete(id); err != nil {
			t.Fatal(err)
		}
	}
	s.Until("deletions are followed", 2*time.Minute, all(s.Peers[0], "gone", "withdrawn"))
	// The dead peer is still reported as missing.
	if posts, captured, _ := exported(s.Peers[1]); posts+captured != 0 {
		t.Errorf("exported after the posts were deleted: %d posts that name a file, %d files", posts, captured)
	}
	if n, size := count(); n != 0 || size != 0 {
		t.Errorf("%d files of %d bytes are counted", n, size)
	}
}

func TestFilesNotInGeoMode(t *testing.T) {
	o := node.Options{Dir: "x", Media: 1, Partition: partition.ModeGeo}
	if err := o.Validate(); err == nil {
		t.Error("files of accounts in geo mode are not refused")
	}
	for _, size := range []int64{-1, 3 << 20} {
		if err := (node.Options{Dir: "x", Media: size}).Validate(); err == nil {
			t.Errorf("files of up to %d bytes are not refused", size)
		}
	}
}
