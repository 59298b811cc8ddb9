package node

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
)

// serve answers one request of another peer, if the peer's credit and the rules of package quota
// allow it. It never panics on what a peer sends: wire has validated the message, and Keys are
// checked where they enter.
func (n *Node) serve(ctx context.Context, from string, req *wire.Request) *wire.Response {
	if no := n.gate.Admit(from, req); no != nil {
		return no
	}
	if no := n.gate.Allows(ctx, from, req); no != nil {
		return call.Refuse(no.Code, no.Reason, no.After)
	}
	if no := n.putsOff(req); no != nil {
		return call.Refuse(no.Code, no.Reason, no.After)
	}
	resp, err := n.answer(ctx, from, req)
	var refusal *call.Refusal
	if errors.As(err, &refusal) {
		return call.Refuse(refusal.Code, refusal.Reason, refusal.After)
	}
	if err != nil {
		n.log.Warn("request failed", "peer", from, "err", err)
		return call.Refuse(wire.Refusal_CODE_INTERNAL, err.Error(), time.Second)
	}
	return resp
}

// answer calls the handler of the request.
func (n *Node) answer(ctx context.Context, from string, req *wire.Request) (*wire.Response, error) {
	switch b := req.Body.(type) {
	case *wire.Request_Forward:
		ack, err := n.registrar.Serve(ctx, b.Forward)
		return &wire.Response{Body: &wire.Response_Forward{Forward: ack}}, err
	case *wire.Request_Query:
		a, err := n.search.ServeQuery(ctx, b.Query)
		return &wire.Response{Body: &wire.Response_Query{Query: a}}, err
	case *wire.Request_WhoOwns:
		return n.serveWhoOwns(b.WhoOwns), nil
	case *wire.Request_Show:
		return n.serveShow(b.Show)
	case *wire.Request_Status:
		a, err := n.serveStatus()
		return &wire.Response{Body: &wire.Response_Status{Status: a}}, err
	case *wire.Request_Lease:
		a, err := n.elections.ServeLease(from, b.Lease)
		return &wire.Response{Body: &wire.Response_Lease{Lease: a}}, err
	case *wire.Request_Ballots:
		a, err := n.elections.ServeBallots(from, b.Ballots)
		return &wire.Response{Body: &wire.Response_Ballots{Ballots: a}}, err
	case *wire.Request_Configs:
		a, err := n.receiver.ServeReplicaSets(from, b.Configs)
		return &wire.Response{Body: &wire.Response_Configs{Configs: a}}, err
	case *wire.Request_Ship:
		a, err := n.receiver.ServeReplicate(from, b.Ship)
		return &wire.Response{Body: &wire.Response_Ship{Ship: a}}, err
	case *wire.Request_Compare:
		a, err := n.repairs.ServeCompare(from, b.Compare)
		return &wire.Response{Body: &wire.Response_Compare{Compare: a}}, err
	case *wire.Request_Unite:
		a, err := n.receiver.ServeReconcile(ctx, from, b.Unite)
		return &wire.Response{Body: &wire.Response_Unite{Unite: a}}, err
	case *wire.Request_Turns:
		return &wire.Response{Body: &wire.Response_Turns{Turns: n.addresses.Serve(from, b.Turns)}}, nil
	case *wire.Request_Overrule:
		return n.serveOverrule(ctx, from, b.Overrule)
	case *wire.Request_Copies:
		a, err := n.search.ServeCopies(ctx, b.Copies)
		return &wire.Response{Body: &wire.Response_Copies{Copies: a}}, err
	case *wire.Request_Records:
		a, err := n.search.ServeRecords(b.Records)
		return &wire.Response{Body: &wire.Response_Records{Records: a}}, err
	}
	return call.Refuse(wire.Refusal_CODE_UNSUPPORTED, "this peer does not know that message", 0), nil
}

// serveWhoOwns returns the replicas of a slice, or none for a slice of another zone.
func (n *Node) serveWhoOwns(w *wire.WhoOwns) *wire.Response {
	s, err := n.whose(w)
	if err != nil {
		return call.Refuse(wire.Refusal_CODE_MALFORMED, err.Error(), 0)
	}
	a := &wire.WhoOwnsAnswer{Slice: uint64(s)}
	if !outside(s, n.dht.Zone()) {
		a.Keepers = n.replicas(s)
	}
	_, view := n.placement.Views()
	if len(a.Keepers) > 0 {
		if m, ok := view.Find(a.Keepers[0]); ok {
			a.Addrs = m.Addrs
		}
	}
	return &wire.Response{Body: &wire.Response_WhoOwns{WhoOwns: a}}
}

// serveShow returns what this peer's store knows of a Key.
func (n *Node) serveShow(s *wire.Show) (*wire.Response, error) {
	k, err := partition.KeyFromWire(s.Key)
	if err != nil {
		return call.Refuse(wire.Refusal_CODE_MALFORMED, err.Error(), 0), nil
	}
	sl := n.store.SliceOf(k)
	if s.Slice != 0 {
		if sl, err = n.swarm.SliceFrom(s.Slice, k); err != nil {
			return call.Refuse(wire.Refusal_CODE_MALFORMED, err.Error(), 0), nil
		}
	}
	shown, placed, err := n.showHere(sl, k)
	if err != nil {
		return nil, err
	}
	a := &wire.ShowAnswer{Known: shown.Known, Placed: uint64(placed)}
	rec := shown.Record
	shown.Record = nil
	if a.Due, err = json.Marshal(shown); err != nil {
		return nil, err
	}
	if rec != nil {
		if a.Record, err = call.Plain(rec); err != nil {
			return nil, err
		}
	}
	return &wire.Response{Body: &wire.Response_Show{Show: a}}, nil
}

// serveStatus returns this peer's status, and the counters that WaitIdle compares.
func (n *Node) serveStatus() (*wire.StatusAnswer, error) {
	st := n.Status()
	st.Budgets, st.Rejected = nil, nil // names and use of credentials are only for the operator
	b, err := json.Marshal(st)
	if err != nil {
		return nil, err
	}
	_, view := n.placement.Views()
	return &wire.StatusAnswer{Acting: uint64(st.Slices), Json: b, Idle: st.Idle, Sent: uint64(n.links.LinksOut.Load()),
		Received: uint64(n.links.LinksIn.Load()),
		Seeds:    uint64(st.Keys), View: view.Digest(), Done: n.done.Load(), Load: uint64(n.load())}, nil
}
