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
	"github.com/echo-node/echo-node/node/replica/message"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
)

// openNode returns one running node that has all slices and nothing to crawl.
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

// running runs n and returns when it is ready and has slices. stop ends and closes it.
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

// A forwarded Key is validated like a seed. A bad one from a hostile peer is refused with a reason,
// changes nothing and is counted.
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
	if got := n.links.Refused.Load(); got < int64(len(bad))-2 { // depth is policy, not abuse
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

// I5: a peer that does not own a slice reports the owner, and admits nothing.
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

// Only a slice's agreed owner may send its log or read its rows here. No peer may send a ballot of
// another peer.
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

// The map is GeoJSON, also if members do not report their location.
func TestMap(t *testing.T) {
	n := openNode(t, Options{Location: &partition.Point{Lat: 38.72, Lon: -9.14}})
	b, err := n.board.Map(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var fc struct {
		Features []struct {
			Geometry *struct{ Coordinates any }
		}
	}
	if err := json.Unmarshal(b, &fc); err != nil || len(fc.Features) != 1 {
		t.Fatalf("%s: %v", b, err)
	}
	if g := fc.Features[0].Geometry; g == nil || fmt.Sprint(g.Coordinates) != "[-9.14 38.72]" {
		t.Errorf("%s", b)
	}
}

// In geo mode the map has every cell as a ring that RFC 7946 allows: closed, counterclockwise, in
// one piece.
func TestMapCells(t *testing.T) {
	o := Options{Partition: partition.ModeGeo, Location: &partition.Point{Lat: 38.72, Lon: -9.14}}
	if racetest.Small(t) {
		o.CellLevel = 4
	}
	n := openNode(t, o)
	b, err := n.board.Map(t.Context())
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
