package hostile

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

// Deed is what a peer does with one request that it receives.
type Deed uint8

// The deeds.
const (
	Serve   Deed = iota // like an honest peer
	Lie                 // a false response of that kind
	Babble              // a response of that kind, filled at random
	Refuse              // busy, for an hour
	Silence             // no response
	Delay               // an honest response, late
	Stop                // half of a response
	Flood               // a response over every limit
)

// Host is a peer's host whose responses to requests can be observed and replaced.
type Host struct {
	host.Host
	// Decide says what happens to a request; nil = all are served.
	Decide func(from string, req *wire.Request) Deed
	// Answer makes a false response.
	Answer func(req *wire.Request, babble bool) *wire.Response
	// Seen is called with each request that was served and its response; nil = not called.
	Seen func(from string, req *wire.Request, resp *wire.Response)

	mu   sync.Mutex
	ends chan struct{}
}

// NewHost wraps h.
func NewHost(h host.Host) *Host { return &Host{Host: h, ends: make(chan struct{})} }

// Close implements host.Host.
func (h *Host) Close() error {
	h.mu.Lock()
	select {
	case <-h.ends:
	default:
		close(h.ends)
	}
	h.mu.Unlock()
	return h.Host.Close()
}

// SetStreamHandler implements host.Host. It wraps handlers of requests.
func (h *Host) SetStreamHandler(id protocol.ID, serve network.StreamHandler) {
	if strings.HasSuffix(string(id), "/rpc/1") || strings.HasSuffix(string(id), "/urgent/1") {
		honest := serve
		serve = func(s network.Stream) { h.serve(s, honest) }
	}
	h.Host.SetStreamHandler(id, serve)
}

const silence = 20 * time.Second // longer than any caller waits

// serve reads a request, asks Decide, and does that deed. The honest handler reads the
// request's bytes again from the start.
func (h *Host) serve(s network.Stream, honest network.StreamHandler) {
	var raw bytes.Buffer
	req, _, err := wire.ReadRequest(io.TeeReader(s, &raw))
	deed := Serve
	if err == nil && h.Decide != nil {
		deed = h.Decide(s.Conn().RemotePeer().String(), req)
	}
	switch deed {
	case Silence:
		h.wait(silence)
		_ = s.Reset()
		return
	case Delay:
		h.wait(3 * time.Second)
	case Refuse:
		h.reply(s, &wire.Response{Version: partition.WireVersion, Id: req.Id,
			Refusal: &wire.Refusal{Code: wire.Refusal_CODE_BUSY, Reason: "later \x1b]0;owned\x07",
				RetryAfterMs: 3600_000, Pause: true}}, 1)
		return
	case Lie, Babble, Stop, Flood:
		resp := h.Answer(req, deed == Babble)
		resp.Version, resp.Id = partition.WireVersion, req.Id
		switch deed {
		case Stop:
			h.reply(s, resp, 0.5)
		case Flood:
			_, _ = s.Write(FrameOf(make([]byte, wire.MaxFrame+1)))
			_ = s.Close()
		default:
			h.reply(s, resp, 1)
		}
		return
	}
	t := &tapped{Stream: s, in: io.MultiReader(&raw, s)}
	honest(t)
	if h.Seen != nil && err == nil {
		if resp, _, rerr := wire.ReadResponse(bytes.NewReader(t.out.Bytes())); rerr == nil {
			h.Seen(s.Conn().RemotePeer().String(), req, resp)
		}
	}
}

func (h *Host) wait(long time.Duration) {
	t := time.NewTimer(long)
	defer t.Stop()
	select {
	case <-t.C:
	case <-h.ends:
	}
}

// reply writes a share of a response, valid or not.
func (h *Host) reply(s network.Stream, resp *wire.Response, share float64) {
	frame := Frame(resp)
	if _, err := s.Write(frame[:int(share*float64(len(frame)))]); err != nil || share < 1 {
		_ = s.Reset()
		return
	}
	_ = s.Close()
}

// tapped is a stream of which a part was already read, and whose response is observed.
type tapped struct {
	network.Stream
	in  io.Reader
	out bytes.Buffer
}

func (t *tapped) Read(p []byte) (int, error) { return t.in.Read(p) }

func (t *tapped) Write(p []byte) (int, error) {
	t.out.Write(p)
	return t.Stream.Write(p)
}

// AnswerTo returns a false response to req that tries to deceive the peer that sent it.
func (sc *Scene) AnswerTo(r *rand.Rand, req *wire.Request) *wire.Response {
	all := sc.Thefts()
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	stolen := all[pick(r, names...)]
	if len(stolen) == 0 { // all are spared
		stolen = []*wire.Config{sc.replicaSet(sc.Slice)}
	}
	switch b := req.Body.(type) {
	case *wire.Request_Lease:
		return sc.leaseLie(r, stolen)
	case *wire.Request_Configs:
		return &wire.Response{Body: &wire.Response_Configs{Configs: &wire.ConfigsAnswer{Known: stolen,
			Next: uint64(pick(r, sc.All...))}}}
	case *wire.Request_Ballots:
		a := &wire.BallotsAnswer{}
		for range b.Ballots.GetProposals() {
			c := pick(r, stolen...)
			a.Promises = append(a.Promises, pick(r,
				&wire.Promise{Ok: true, Copied: true, Head: 1 << 40},
				&wire.Promise{Ok: true, Accepted: 1 << 61, AcceptedBy: sc.Me, Proposal: c},
				&wire.Promise{Newer: c}, &wire.Promise{Promised: 1 << 61, PromisedBy: sc.Me},
				&wire.Promise{LeasedMs: 1 << 30}))
		}
		return &wire.Response{Body: &wire.Response_Ballots{Ballots: a}}
	case *wire.Request_Ship:
		a := &wire.ShipAnswer{}
		for _, p := range b.Ship.GetPieces() {
			a.Stances = append(a.Stances, pick(r, &wire.Stance{Ok: true, Whole: true, Head: p.To},
				&wire.Stance{Ok: true, Whole: true, Head: 1 << 60},
				&wire.Stance{Behind: true}, &wire.Stance{Stray: true, Ok: true},
				&wire.Stance{Newer: pick(r, stolen...)}))
		}
		return &wire.Response{Body: &wire.Response_Ship{Ship: a}}
	case *wire.Request_Compare:
		a := &wire.CompareAnswer{Drop: true, Head: sc.Head}
		if b.Compare.GetRows() {
			a.Rows = sc.Rows
		} else if b.Compare.GetDrop() == nil {
			a.Digests = make([]byte, wire.MaxDigests)
			a.Digests[r.IntN(len(a.Digests))] = byte(r.Uint32())
		}
		return &wire.Response{Body: &wire.Response_Compare{Compare: a}}
	case *wire.Request_Unite:
		return &wire.Response{Body: &wire.Response_Unite{Unite: &wire.UniteAnswer{Ok: true}}}
	case *wire.Request_Status:
		return &wire.Response{Body: &wire.Response_Status{Status: &wire.StatusAnswer{Json: []byte(`{}`), Idle: true,
			Done: true, Acting: 1 << 40, Sent: 1, Received: 1 << 60}}}
	}
	return sc.crawlLie(r, req)
}

func (sc *Scene) leaseLie(r *rand.Rand, stolen []*wire.Config) *wire.Response {
	a := &wire.LeaseAnswer{}
	switch r.IntN(4) {
	case 0:
		a.Newer = stolen
	case 1:
		a.Differs = true
	case 2:
		for _, s := range sc.All {
			a.Refused = append(a.Refused, uint64(s))
		}
	}
	return &wire.Response{Body: &wire.Response_Lease{Lease: a}}
}

// crawlLie responds falsely to requests of the crawl and of queries.
func (sc *Scene) crawlLie(r *rand.Rand, req *wire.Request) *wire.Response {
	switch b := req.Body.(type) {
	case *wire.Request_Forward:
		a := &wire.ForwardAck{Owner: pick(r, append(sc.Peers, sc.Me)...), RetryAfterMs: 1 << 40}
		for i := range b.Forward.GetLinks() {
			a.Answers = append(a.Answers, wire.ForwardAck_Answer(1+r.IntN(5)))
			if r.IntN(3) == 0 {
				a.Moved = append(a.Moved, &wire.Moved{Link: uint32(i), To: uint64(pick(r, sc.All...)), Gen: 1 << 40})
			}
		}
		return &wire.Response{Body: &wire.Response_Forward{Forward: a}}
	case *wire.Request_Turns:
		a := &wire.TurnsAnswer{}
		for range b.Turns.GetAsks() {
			a.Answers = append(a.Answers, &wire.TurnAnswer{State: wire.TurnAnswer_State(1 + r.IntN(5)),
				WaitMs: uint64(r.IntN(wire.MaxTurnMs)), TermMs: uint64(r.IntN(wire.MaxTurnMs)), GapMs: 1,
				Owner: pick(r, append(sc.Peers, sc.Me)...)})
		}
		return &wire.Response{Body: &wire.Response_Turns{Turns: a}}
	case *wire.Request_WhoOwns:
		return &wire.Response{Body: &wire.Response_WhoOwns{WhoOwns: &wire.WhoOwnsAnswer{Slice: b.WhoOwns.GetSlice(),
			Keepers: []string{sc.Me, "nobody"}}}}
	case *wire.Request_Query:
		a := &wire.QueryAnswer{Total: 1 << 60}
		for range 20 {
			a.Hits = append(a.Hits, &wire.Hit{Key: string(sc.key()), Score: 1e9, Title: "\x1b]0;owned\x07"})
		}
		return &wire.Response{Body: &wire.Response_Query{Query: a}}
	}
	return sc.RandomAnswer(r, KindOf(req), req.GetId())
}
