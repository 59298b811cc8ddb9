package node

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// elsewhere is the store of another peer of n's swarm.
func elsewhere(t *testing.T, n *Node) *store.Store {
	t.Helper()
	s, err := store.Create("other", store.Options{FS: vfs.NewMem(), Charter: n.charter})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func mustKey(t *testing.T, url string) partition.Key {
	t.Helper()
	k, err := partition.ParseKey(url)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// withOther puts a member into n's view and gives a slice that it owns.
func withOther(t *testing.T, n *Node, id string) partition.Slice {
	t.Helper()
	live, _ := n.terr.views()
	n.terr.setView(partition.NewView(append(append([]partition.Member(nil), live.Members()...), partition.Member{ID: id, Capacity: 16})), time.Now())
	for _, s := range n.charter.Slices() {
		if n.terr.owner(s) == id {
			return s
		}
	}
	t.Fatal("it owns nothing")
	return 0
}

// I2: an admission that began while a slice was acted in is in the rows that
// its new owner reads, and a slice is not called empty before it has ended.
func TestI2HandoverWaitsForAdmissions(t *testing.T) {
	n := openNode(t, Options{})
	s := withOther(t, n, "other")
	for name, tr := range map[string]*wire.Transfer{"list": {}, "page": {Slice: uint64(s)}} {
		n.admitting.RLock() // an admission under way
		done := make(chan *wire.Response, 1)
		go func() {
			done <- n.serve(t.Context(), "other", &wire.Request{Body: &wire.Request_Transfer{Transfer: tr}})
		}()
		select {
		case r := <-done:
			t.Errorf("%s: answered %v before the admission ended", name, r)
		case <-time.After(100 * time.Millisecond):
		}
		n.admitting.RUnlock()
		if r := <-done; r.GetTransfer() == nil {
			t.Errorf("%s: %v", name, r)
		}
	}
}

// What a peer read of a slice before it came back here for a while is not
// dropped on its word.
func TestReleaseNeedsAnUnbrokenReading(t *testing.T) {
	tr := newTerritory(testCharter(), "a", time.Minute)
	tr.setView(members("a"), t0)
	tr.adopt(tr.awaited()...)
	tr.setView(members("a", "b"), t0)
	s := tr.keptFor("b")[0]
	if !tr.release(s) || !tr.released(s, "b") || tr.released(s, "c") {
		t.Fatal("not released to b alone")
	}
	tr.setView(members("a"), t0)
	tr.expire(t0.Add(2 * time.Minute))
	tr.setView(members("a", "b"), t0.Add(3*time.Minute))
	if tr.owner(s) != "b" || tr.released(s, "b") {
		t.Fatal("b may have it dropped without reading it anew")
	}
}

// Rows that come into a slice acted in already are crawled too.
func TestTakenIntoAnActingSliceIsCrawled(t *testing.T) {
	n := openNode(t, Options{AllowNet: []netip.Prefix{netip.MustParsePrefix("127.99.0.0/16")}, Delay: time.Millisecond})
	k := mustKey(t, "http://127.99.0.1:9/")
	s := n.store.SliceOf(k)
	other := elsewhere(t, n)
	if _, err := other.Admit([]store.Admission{{Key: k}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	rows, _, err := other.SliceRows(s, nil, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.importRows(s, rows); err != nil {
		t.Fatal(err)
	}
	if err := n.taken(t.Context(), []partition.Slice{s}, map[partition.Slice]map[string]bool{s: {"nobody": true}}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); n.crawler.Stats().Requests == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("its site is never asked: %+v", n.crawler.Stats())
		}
	}
}

// Texts that expand a thousandfold do not keep a slice from being taken over.
func TestImportOfWhatExpands(t *testing.T) {
	n := openNode(t, Options{})
	other := elsewhere(t, n)
	now := time.Now()
	text := strings.Repeat("spam ", 200_000)
	var s partition.Slice
	for i := range 70 {
		k := mustKey(t, fmt.Sprintf("http://spam.example/%d", i))
		s = other.SliceOf(k)
		if _, err := other.Admit([]store.Admission{{Key: k}}, now); err != nil {
			t.Fatal(err)
		}
		r := &store.Record{V: store.RecordVersion, Key: k, Kind: "page", URL: k.URL(), FetchedAt: now, Source: "web", Status: 200, Text: text}
		if err := other.Commit(store.Commit{Key: k, Now: now, Record: r, Next: store.Next{State: store.StateDone}}); err != nil {
			t.Fatal(err)
		}
	}
	rows, next, err := other.SliceRows(s, nil, MaxTransferPage)
	if err != nil || len(next) > 0 {
		t.Fatal(len(rows), next, err)
	}
	if err := n.importRows(s, rows); err != nil {
		t.Fatal(err)
	}
	if st := n.store.Stats(); st.Records != 70 {
		t.Errorf("%d records of 70", st.Records)
	}
}

// Rows of a slice that is not held are offered to its owner: forgotten, their
// Keys would be pending for ever.
func TestStraysAreOffered(t *testing.T) {
	n := openNode(t, Options{})
	s := withOther(t, n, "other")
	var k partition.Key
	for i := 0; k == "" || n.store.SliceOf(k) != s; i++ {
		k = mustKey(t, fmt.Sprintf("http://host%d.example/", i))
	}
	n.terr.drop(s) // as after a crash between the mark and the rows
	if _, err := n.store.Admit([]store.Admission{{Key: k}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	strays, err := n.strays()
	if err != nil || len(strays) != 1 || !strays[s] {
		t.Fatal(strays, err)
	}
	if err := n.offer(strays); err != nil {
		t.Fatal(err)
	}
	r := n.serve(t.Context(), "other", &wire.Request{Body: &wire.Request_Transfer{Transfer: &wire.Transfer{}}})
	if h := r.GetTransfer().GetHolds(); len(h) != 1 || h[0] != uint64(s) {
		t.Fatalf("%v", r)
	}
	n.serve(t.Context(), "other", &wire.Request{Body: &wire.Request_Transfer{Transfer: &wire.Transfer{Release: true, Slices: []uint64{uint64(s)}}}})
	if st := n.store.Stats(); st.Pending != 0 {
		t.Errorf("%d keys are pending here", st.Pending)
	}
}
