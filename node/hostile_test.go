package node

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/replica/message"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
)

// openNode is one running node that holds all slices, with nothing to crawl.
func openNode(t testing.TB, o Options) *Node {
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
	t.Cleanup(running(t, n))
	return n
}

// running runs n, and returns when it is ready and has slices. stop ends and closes it.
func running(t testing.TB, n *Node) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
	for deadline := time.Now().Add(30 * time.Second); n.ready() != nil ||
		n.Status().Slices == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			stop()
			t.Fatalf("not ready: %v", n.ready())
		}
	}
	return stop
}

func forwardTo(t *testing.T, n *Node, links ...*wire.Link) *wire.ForwardAck {
	t.Helper()
	resp := n.serve(t.Context(), n.id, &wire.Request{Body: &wire.Request_Forward{Forward: &wire.Forward{Links: links}}})
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
		"no source for it":   {Key: "mastodon:search/x"},
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
	ok := forwardTo(t, n, &wire.Link{Key: "web:http://127.99.0.1/"}, &wire.Link{Key: "web:http://127.99.0.1/"},
		&wire.Link{Key: "bad"})
	want := []wire.ForwardAck_Answer{wire.ForwardAck_ANSWER_ADMITTED, wire.ForwardAck_ANSWER_KNOWN,
		wire.ForwardAck_ANSWER_REFUSED}
	for i, a := range ok.Answers {
		if a != want[i] {
			t.Errorf("answer %d is %v, want %v", i, a, want[i])
		}
	}
}

// I5: a peer that does not own a slice says who does, and admits nothing.
func TestI5StaleOwnerNamesTheOwner(t *testing.T) {
	n := openNode(t, Options{})
	k := mustKey(t, "http://host.example/")
	give(t, n, n.store.SliceOf(k), "other")
	ack := forwardTo(t, n, &wire.Link{Key: string(k)})
	if ack.Answers[0] != wire.ForwardAck_ANSWER_NOT_OWNER || ack.Owner != "other" {
		t.Fatalf("%v", ack)
	}
	if _, err := n.store.Queue.DueOf(k); !isNotExist(err) {
		t.Fatalf("it was admitted: %v", err)
	}
}

// Nobody but a slice's owner, by what was agreed, brings its log or reads its
// rows here; nobody speaks for another in a ballot.
func TestOnlyTheOwnerReplicatesAndCompares(t *testing.T) {
	n := openNode(t, Options{})
	enter(n, "member", "owner")
	all := n.charter.Slices()
	ours, theirs := all[0], all[1]
	c := give(t, n, theirs, "owner")
	ship := func(from string, s partition.Slice, gen uint64) *wire.Stance {
		r := n.serve(t.Context(), from, &wire.Request{Body: &wire.Request_Ship{Ship: &wire.Ship{Pieces: []*wire.Piece{
			{Slice: uint64(s), Gen: gen, Kind: wire.Piece_KIND_COPIED, To: 7}}}}})
		if r.GetShip() == nil {
			return nil
		}
		return r.GetShip().Stances[0]
	}
	if st := ship("member", ours, 0); st.GetOk() {
		t.Errorf("a member replicates into a slice of this peer: %v", st)
	}
	if st := ship("member", theirs, c.Gen); st.GetOk() {
		t.Errorf("a member replicates for the owner: %v", st)
	}
	if st := ship("stranger", theirs, c.Gen); st != nil {
		t.Errorf("a stranger replicates: %v", st)
	}
	if st := ship("owner", theirs, 0); st.GetNewer() == nil {
		t.Errorf("an old generation replicates: %v", st)
	}
	if st := ship("owner", theirs, c.Gen+1); !st.GetBehind() {
		t.Errorf("an unknown generation replicates: %v", st)
	}
	if n.store.Log.LogHead(ours) != 0 {
		t.Error("a log moved")
	}
	if r := n.serve(t.Context(), "member",
		&wire.Request{Body: &wire.Request_Compare{Compare: &wire.Compare{Slice: uint64(theirs),
			Rows: true}}}); r.GetRefusal() == nil {
		t.Errorf("a member reads rows: %v", r)
	}
	for _, accept := range []bool{false, true} {
		next := n.quorum.ReplicaSet(ours).Next("member", []string{"member"}, 0)
		p := &wire.Proposal{Base: message.Set(ours, n.quorum.ReplicaSet(ours)), Ballot: 9, By: "member",
			Next: message.Set(ours, next)}
		for _, from := range []string{"member", "stranger"} {
			r := n.serve(t.Context(), from,
				&wire.Request{Body: &wire.Request_Ballots{Ballots: &wire.Ballots{Accept: accept,
					Proposals: []*wire.Proposal{p}}}})
			if r.GetBallots() != nil && r.GetBallots().Promises[0].Ok {
				t.Errorf("%s takes a slice that is leased to this peer: %v", from, r)
			}
		}
	}
	if !n.agreement.Acts(ours) {
		t.Error("this peer does not act any more")
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
		"a hit that is no key": {Hits: []*wire.Hit{{Key: "javascript:alert(1)"}}},
		"a hit of another slice": {Hits: []*wire.Hit{{Key: string(mustKey(t, "http://xx.example/")),
			Score: 1e9}}},
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
	k := mustKey(t, "http://host.example/")
	for i, s := range n.charter.Slices()[:8] { // more than one, so that failures come while others are asked
		if s == n.store.SliceOf(k) {
			continue
		}
		enter(n, fmt.Sprint("nobody", i))
		give(t, n, s, fmt.Sprint("nobody", i))
	}
	forwardTo(t, n, &wire.Link{Key: string(k)})
	rec := &store.Record{V: store.RecordVersion, Key: k, Kind: "page", URL: k.URL(), FetchedAt: time.Now(),
		Source: "web", Status: 200, Text: "sardinha"}
	if err := n.store.Commit(store.Commit{Key: k, Now: time.Now(), Record: rec,
		Next: store.Next{State: store.StateDone}}); err != nil {
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
	enter(n, "p")
	if r := n.serve(t.Context(), "p", &wire.Request{}); r.GetRefusal().GetCode() != wire.Refusal_CODE_UNSUPPORTED {
		t.Errorf("%v", r)
	}
	r := n.serve(t.Context(), "p", &wire.Request{Body: &wire.Request_Show{Show: &wire.Show{Key: "nonsense"}}})
	if r.GetRefusal().GetCode() != wire.Refusal_CODE_MALFORMED {
		t.Errorf("%v", r)
	}
	r = n.serve(t.Context(), "p",
		&wire.Request{Body: &wire.Request_WhoOwns{WhoOwns: &wire.WhoOwns{Key: "web:http://example.org/"}}})
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
	if g := fc.Features[0].Geometry; g == nil || fmt.Sprint(g.Coordinates) != "[-9.14 38.72]" {
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
		if _, err := n.store.Queue.Admit([]store.Admission{{Key: k}}, now); err != nil {
			t.Fatal(err)
		}
		rec := &store.Record{V: store.RecordVersion, Key: k, Kind: "page", URL: k.URL(), FetchedAt: now, Source: "web",
			Peer: n.id, Status: 200, Lang: []string{"pt", "en"}[i%2]}
		if err := n.store.Commit(store.Commit{Key: k, Now: now, Record: rec,
			Next: store.Next{State: store.StateDone}}); err != nil {
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

// Captures come before their record, in pages that fit a frame, whatever their
// size; and with it, in an export that asks for them.
func TestExportOfCaptures(t *testing.T) {
	n := openNode(t, Options{})
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	noise := make([]byte, store.MaxBodyBytes)
	rng := rand.NewChaCha8([32]byte{})
	keys := []partition.Key{mustKey(t, "http://a.example/1"), mustKey(t, "http://a.example/2"),
		mustKey(t, "http://b.example/1")}
	if _, err := n.store.Queue.Admit([]store.Admission{{Key: keys[0]}, {Key: keys[1]}, {Key: keys[2]}},
		now); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		for _, k := range keys {
			now = now.Add(time.Minute)
			_, _ = rng.Read(noise)
			head := []byte("HTTP/1.1 200 OK\r\n" + strings.Repeat("X: \x01\x02\r\n", 2000))
			rec := &store.Record{V: store.RecordVersion, Key: k, Kind: "page", URL: k.URL(), FetchedAt: now,
				Status: 200, Digest: fmt.Sprint(i), Text: strings.Repeat("\x01", 1<<20)}
			c := store.Commit{Key: k, Now: now, Record: rec, Next: store.Next{State: store.StateDone},
				Capture: &store.Capture{Request: head, Response: head, Body: noise}}
			if err := n.store.Commit(c); err != nil {
				t.Fatal(err)
			}
		}
	}
	var parts []string
	var after spot
	for {
		a, err := n.recordsOf(t.Context(), n.id, after, &wire.Records{Captures: true})
		if err != nil {
			t.Fatal(err)
		}
		resp := &wire.Response{Version: partition.WireVersion, Body: &wire.Response_Records{Records: a}}
		if size := proto.Size(resp); size > wire.MaxFrame {
			t.Fatalf("an answer of %d bytes", size)
		}
		if err := resp.Validate(); err != nil {
			t.Fatal(err)
		}
		s := &shelf{n: n, peer: n.id, after: after, captures: true}
		if err := s.take(a); err != nil {
			t.Fatal(err)
		}
		if s.ended {
			break
		}
		after = s.after
		for _, x := range s.page {
			parts = append(parts, fmt.Sprintf("%s %d %d", x.key, len(x.part), len(x.capture.Body)))
		}
	}
	if len(parts) != 12 || parts[2] != parts[1] ||
		!strings.HasSuffix(parts[2], fmt.Sprint(" 9 ", store.MaxBodyBytes)) || !strings.HasSuffix(parts[3], " 0 0") {
		t.Errorf("%q", parts)
	}
	records := 0
	_, err := n.Export(t.Context(), api.Export{Captures: true}, func(rec store.Record, cursor string) error {
		if records++; len(rec.Captures) != 3 || rec.Captures[2].Digest != rec.Digest ||
			len(rec.Captures[0].Body) != store.MaxBodyBytes || rec.Captures[1].Key != rec.Key {
			t.Errorf("%s: %d captures", rec.Key, len(rec.Captures))
		}
		return nil
	})
	if err != nil || records != 3 {
		t.Errorf("%d records: %v", records, err)
	}
	_, err = n.Export(t.Context(), api.Export{}, func(rec store.Record, _ string) error {
		if len(rec.Captures) != 0 {
			t.Errorf("%d captures that nobody asked for", len(rec.Captures))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
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

// In geo mode the map has every cell, as a ring that RFC 7946 takes: closed,
// counterclockwise, in one piece.
func TestMapCells(t *testing.T) {
	o := Options{Partition: partition.ModeGeo, Location: &partition.Point{Lat: 38.72, Lon: -9.14}}
	if racetest.Small(t) {
		o.CellLevel = 4
	}
	n := openNode(t, o)
	b, err := n.geoJSON(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var fc struct {
		Features []struct {
			ID       string
			Geometry struct {
				Type        string
				Coordinates json.RawMessage
			}
			Properties map[string]any
		}
	}
	if err := json.Unmarshal(b, &fc); err != nil || len(fc.Features) != 1+len(n.placer.Slices()) {
		t.Fatalf("%d features, %v", len(fc.Features), err)
	}
	for _, f := range fc.Features[1:] {
		var rings [][][2]float64
		if err := json.Unmarshal(f.Geometry.Coordinates, &rings); err != nil || f.Geometry.Type != "Polygon" ||
			len(rings) != 1 || len(rings[0]) != 5 || rings[0][0] != rings[0][4] {
			t.Fatalf("%s: %s, %v", f.ID, f.Geometry.Coordinates, err)
		}
		area := 0.0
		for i, p := range rings[0][:4] {
			q := rings[0][i+1]
			area += p[0]*q[1] - q[0]*p[1]
			if math.Abs(p[0]-q[0]) > 180 {
				t.Fatalf("%s: %v is in two pieces", f.ID, rings[0])
			}
		}
		if sl, err := partition.ParseSlice(f.ID); err != nil || f.Properties["owner"] == nil ||
			f.Properties["level"] != float64(sl.Level()) {
			t.Fatalf("%s: %v, %v", f.ID, f.Properties, err)
		}
		if area <= 0 && math.Abs(rings[0][0][1]) < 60 {
			t.Errorf("%s: %v is clockwise", f.ID, rings[0])
		}
	}
}
