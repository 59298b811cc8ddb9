package node

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// openNode is one running node that holds all slices, with nothing to crawl.
func openNode(t *testing.T, o Options) *Node {
	t.Helper()
	o.Dir = t.TempDir()
	o.SliceBits = 4
	o.Listen = []string{"/ip4/127.0.0.1/udp/0/quic-v1"}
	if err := Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	n, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	for deadline := time.Now().Add(30 * time.Second); n.ready() != nil || len(n.terr.acting()) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not ready: %v", n.ready())
		}
	}
	return n
}

func forwardTo(t *testing.T, n *Node, links ...*wire.Link) *wire.ForwardAck {
	t.Helper()
	resp := n.serve(t.Context(), "somebody", &wire.Request{Body: &wire.Request_Forward{Forward: &wire.Forward{Links: links}}})
	if resp.GetForward() == nil {
		t.Fatalf("no answer: %v", resp)
	}
	return resp.GetForward()
}

// A forwarded Key is validated like a seed: whatever a hostile peer sends is
// refused with a reason, changes nothing and is counted.
func TestForwardedKeysAreCheckedLikeSeeds(t *testing.T) {
	n := openNode(t, Options{AllowNet: []netip.Prefix{netip.MustParsePrefix("127.99.0.0/16")}, MaxDepth: 5})
	bad := map[string]*wire.Link{
		"not a key":          {Key: "hello"},
		"empty":              {Key: ""},
		"another scheme":     {Key: "web:ftp://example.org/"},
		"not canonical":      {Key: "web:HTTP://Example.org"},
		"a fragment":         {Key: "web:http://example.org/#a"},
		"credentials":        {Key: "web:http://a:b@example.org/"},
		"loopback":           {Key: "web:http://127.0.0.1/"},
		"short loopback":     {Key: "web:http://0x7f.1/"},
		"loopback, IPv6":     {Key: "web:http://[::1]/"},
		"mapped loopback":    {Key: "web:http://[::ffff:7f00:1]/"},
		"cloud metadata":     {Key: "web:http://169.254.169.254/latest/"},
		"private":            {Key: "web:http://10.0.0.1/"},
		"unique local":       {Key: "web:http://[fd00::1]/"},
		"carrier NAT":        {Key: "web:http://100.64.0.1/"},
		"unspecified":        {Key: "web:http://0.0.0.0/"},
		"broadcast":          {Key: "web:http://255.255.255.255/"},
		"multicast":          {Key: "web:http://224.0.0.1/"},
		"no source for it":   {Key: "twitter:12345"},
		"too long":           {Key: "web:http://example.org/" + strings.Repeat("a", 1<<16)},
		"bad referrer":       {Key: "web:http://example.org/ok", Referrer: "nonsense"},
		"deeper than we go":  {Key: "web:http://example.org/deep", Depth: 6},
		"a depth out of all": {Key: "web:http://example.org/deep", Depth: 1 << 31},
	}
	before := n.store.Stats()
	for name, l := range bad {
		ack := forwardTo(t, n, l)
		if len(ack.Answers) != 1 || ack.Answers[0] != wire.ForwardAck_ANSWER_REFUSED || ack.Reasons[0] == "" {
			t.Errorf("%s: %v", name, ack)
		}
	}
	if after := n.store.Stats(); after.Keys != before.Keys || after.Outbox != before.Outbox {
		t.Errorf("the store changed: %+v, was %+v", after, before)
	}
	if got := n.count.refused.Load(); got < int64(len(bad))-2 { // depth is policy, not abuse
		t.Errorf("%d refusals counted of %d", got, len(bad))
	}
	ok := forwardTo(t, n, &wire.Link{Key: "web:http://127.99.0.1/"}, &wire.Link{Key: "web:http://127.99.0.1/"}, &wire.Link{Key: "bad"})
	want := []wire.ForwardAck_Answer{wire.ForwardAck_ANSWER_ADMITTED, wire.ForwardAck_ANSWER_KNOWN, wire.ForwardAck_ANSWER_REFUSED}
	for i, a := range ok.Answers {
		if a != want[i] {
			t.Errorf("answer %d is %v, want %v", i, a, want[i])
		}
	}
}

// I5: a peer that does not own a slice says who does, and admits nothing.
func TestI5StaleOwnerNamesTheOwner(t *testing.T) {
	n := openNode(t, Options{})
	other := partition.Member{ID: "other", Capacity: 16}
	live, _ := n.terr.views()
	n.terr.setView(partition.NewView(append(append([]partition.Member(nil), live.Members()...), other)), time.Now())
	for i := range 50 {
		k, err := partition.ParseKey("http://host" + strings.Repeat("x", i) + ".example/")
		if err != nil {
			t.Fatal(err)
		}
		if n.terr.owner(n.store.SliceOf(k)) != "other" {
			continue
		}
		ack := forwardTo(t, n, &wire.Link{Key: string(k)})
		if ack.Answers[0] != wire.ForwardAck_ANSWER_NOT_OWNER || ack.Owner != "other" {
			t.Fatalf("%v", ack)
		}
		if _, err := n.store.DueOf(k); !isNotExist(err) {
			t.Fatalf("it was admitted: %v", err)
		}
		return
	}
	t.Fatal("no key of 50 falls to a peer with 16 of 17 parts")
}

// Nobody but the owner gets a slice's rows, and nobody but the owner can make
// this peer drop them.
func TestTransferOnlyToTheOwner(t *testing.T) {
	n := openNode(t, Options{AllowNet: []netip.Prefix{netip.MustParsePrefix("127.99.0.0/16")}})
	forwardTo(t, n, &wire.Link{Key: "web:http://127.99.0.1/"})
	s := n.store.SliceOf("web:http://127.99.0.1/")
	ask := func(from string, tr *wire.Transfer) *wire.Response {
		return n.serve(t.Context(), from, &wire.Request{Body: &wire.Request_Transfer{Transfer: tr}})
	}
	if r := ask("stranger", &wire.Transfer{Slice: uint64(s)}); r.GetRefusal() == nil {
		t.Errorf("a stranger gets %v", r)
	}
	live, _ := n.terr.views()
	n.terr.setView(partition.NewView(append(append([]partition.Member(nil), live.Members()...), partition.Member{ID: "weak", Capacity: 1})), time.Now())
	var theirs, ours partition.Slice
	for _, x := range n.charter.Slices() {
		if n.terr.owner(x) == "weak" {
			theirs = x
		} else {
			ours = x
		}
	}
	if r := ask("weak", &wire.Transfer{Slice: uint64(ours)}); r.GetRefusal() == nil {
		t.Errorf("a member gets a slice it does not own: %v", r)
	}
	ask("weak", &wire.Transfer{Release: true, Slices: []uint64{uint64(ours), 12345, 0}})
	if !n.terr.holds(ours) {
		t.Error("a member made this peer drop its own slice")
	}
	if r := ask("weak", &wire.Transfer{Slice: uint64(theirs)}); r.GetTransfer() == nil {
		t.Errorf("the owner gets %v", r)
	}
}

// Answers of other peers are not believed blindly either.
func TestHostileAnswers(t *testing.T) {
	n := openNode(t, Options{})
	s := n.newScatter(&wire.Query{})
	k := mustKey(t, "http://example.org/")
	in := []partition.Slice{n.store.SliceOf(k)}
	var other []partition.Slice
	for _, x := range n.charter.Slices() {
		if x != in[0] {
			other = append(other, x)
		}
	}
	for name, a := range map[string]*wire.QueryAnswer{
		"a hit that is no key":            {Hits: []*wire.Hit{{Key: "javascript:alert(1)"}}},
		"a hit of another slice":          {Hits: []*wire.Hit{{Key: string(mustKey(t, "http://xx.example/")), Score: 1e9}}},
		"a missing slice nobody asked of": {Missing: []uint64{uint64(other[0])}},
		"a hit of a slice it misses":      {Hits: []*wire.Hit{{Key: string(k)}}, Missing: []uint64{uint64(in[0])}},
	} {
		if err := s.take("p", a, in, false); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if err := s.take("p", &wire.QueryAnswer{Stats: &wire.TermStats{Opaque: []byte("{")}}, in, true); err == nil {
		t.Error("broken statistics were taken")
	}
	if len(s.hits) != 0 || s.answered != 0 {
		t.Errorf("%+v", s)
	}
	twice := &wire.QueryAnswer{Missing: []uint64{uint64(in[0]), uint64(in[0])}, Total: 1 << 63}
	for range 3 {
		if err := s.take("p", twice, in, false); err != nil {
			t.Fatal(err)
		}
	}
	if s.answered != 0 || s.total != math.MaxUint64 {
		t.Errorf("answered %d, total %d", s.answered, s.total)
	}
}

// A member that says nothing costs its own slices, not the others' answer; one
// that cannot be reached is out without a race.
func TestQueryWithoutSomePeers(t *testing.T) {
	n := openNode(t, Options{QueryTimeout: 2 * time.Second, Capacity: 16})
	live, _ := n.terr.views()
	ms := append([]partition.Member(nil), live.Members()...)
	for i := range 8 { // more than one, so that failures come while others are asked
		ms = append(ms, partition.Member{ID: fmt.Sprint("nobody", i), Capacity: 1})
	}
	n.terr.setView(partition.NewView(ms), time.Now())
	var k partition.Key
	for i := 0; k == "" || n.terr.owner(n.store.SliceOf(k)) != n.id; i++ {
		k = mustKey(t, fmt.Sprintf("http://host%d.example/", i))
	}
	forwardTo(t, n, &wire.Link{Key: string(k)})
	rec := &store.Record{V: store.RecordVersion, Key: k, Kind: "page", URL: k.URL(), FetchedAt: time.Now(), Source: "web", Status: 200, Text: "sardinha"}
	if err := n.store.Commit(store.Commit{Key: k, Now: time.Now(), Record: rec, Next: store.Next{State: store.StateDone}}); err != nil {
		t.Fatal(err)
	}
	if err := n.FlushIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	a, err := n.Query(t.Context(), api.Query{Q: "sardinha"})
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Hits) != 1 || a.Coverage.SlicesAnswered == 0 {
		t.Errorf("%+v", a)
	}
}

// A cursor that a query gave is taken, whatever the limit is.
func TestCursorsAreTaken(t *testing.T) {
	n := openNode(t, Options{})
	c := cursor{Q: cursorOf(api.Query{Q: "sardinha"}), Offset: MaxQueryHits - 50}.String()
	if _, err := n.Query(t.Context(), api.Query{Q: "sardinha", Limit: 300, Cursor: c}); err != nil {
		t.Error(err)
	}
	if _, err := n.Query(t.Context(), api.Query{Q: "sardinha", Lang: "pt", Cursor: c}); err == nil {
		t.Error("a cursor of a query without that filter was taken")
	}
}

func TestUnknownMessageIsRefused(t *testing.T) {
	n := openNode(t, Options{})
	if r := n.serve(t.Context(), "p", &wire.Request{}); r.GetRefusal().GetCode() != wire.Refusal_CODE_UNSUPPORTED {
		t.Errorf("%v", r)
	}
	r := n.serve(t.Context(), "p", &wire.Request{Body: &wire.Request_Show{Show: &wire.Show{Key: "nonsense"}}})
	if r.GetRefusal().GetCode() != wire.Refusal_CODE_MALFORMED {
		t.Errorf("%v", r)
	}
	r = n.serve(t.Context(), "p", &wire.Request{Body: &wire.Request_WhoOwns{WhoOwns: &wire.WhoOwns{Key: "web:http://example.org/"}}})
	if a := r.GetWhoOwns(); len(a.GetKeepers()) != 1 || a.GetKeepers()[0] != n.ID() {
		t.Errorf("%v", r)
	}
}

// The map is GeoJSON whether or not members say where they are.
func TestMap(t *testing.T) {
	n := openNode(t, Options{Location: &partition.Point{Lat: 38.72, Lon: -9.14}})
	b, err := n.geoJSON(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var fc featureCollection
	if err := json.Unmarshal(b, &fc); err != nil || len(fc.Features) != 1 {
		t.Fatalf("%s: %v", b, err)
	}
	if g := fc.Features[0].Geometry; g == nil || g.Coordinates[0] > -9.13 || g.Coordinates[1] < 38.71 {
		t.Errorf("%s", b)
	}
}

// Export pages through records, resumes after any cursor, and filters.
func TestExportResumes(t *testing.T) {
	n := openNode(t, Options{})
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const total = MaxRecordPage + 40
	for i := range total {
		k, err := partition.ParseKey("http://example.org/" + strings.Repeat("p", i))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.store.Admit([]store.Admission{{Key: k}}, now); err != nil {
			t.Fatal(err)
		}
		rec := &store.Record{V: store.RecordVersion, Key: k, Kind: "page", URL: k.URL(), FetchedAt: now, Source: "web", Peer: n.id, Status: 200, Lang: []string{"pt", "en"}[i%2]}
		if err := n.store.Commit(store.Commit{Key: k, Now: now, Record: rec, Next: store.Next{State: store.StateDone}}); err != nil {
			t.Fatal(err)
		}
	}
	whole := exportAll(t, n, api.Export{}, total)
	if len(whole) != total {
		t.Fatalf("%d records of %d", len(whole), total)
	}
	for _, stop := range []int{1, 17, MaxRecordPage, MaxRecordPage + 1, total - 1} {
		first := exportAll(t, n, api.Export{}, stop)
		rest := exportAll(t, n, api.Export{Cursor: first[stop-1][1]}, total)
		if len(first)+len(rest) != total || rest[0][0] != whole[stop][0] {
			t.Errorf("cut after %d: %d and %d records", stop, len(first), len(rest))
		}
	}
	if got := exportAll(t, n, api.Export{Lang: "pt", Site: "example.org"}, total); len(got) != total/2 {
		t.Errorf("%d records in pt of %d", len(got), total)
	}
	if got := exportAll(t, n, api.Export{Since: now.Add(time.Second)}, total); len(got) != 0 {
		t.Errorf("%d records from the future", len(got))
	}
}

// exportAll gives key and cursor of up to limit records.
func exportAll(t *testing.T, n *Node, e api.Export, limit int) [][2]string {
	t.Helper()
	var out [][2]string
	_, err := n.Export(t.Context(), e, func(rec store.Record, cursor string) error {
		if len(out) == limit {
			return context.Canceled
		}
		out = append(out, [2]string{string(rec.Key), cursor})
		return nil
	})
	if err != nil && len(out) < limit {
		t.Fatal(err)
	}
	return out
}
