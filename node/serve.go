package node

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// serve answers one request of another peer. It never panics on what it is
// sent: messages were validated by wire, Keys are checked where they enter.
func (n *Node) serve(ctx context.Context, from string, req *wire.Request) *wire.Response {
	resp, err := n.answer(ctx, from, req)
	if err != nil {
		n.log.Warn("request failed", "peer", from, "err", err)
		return refuse(wire.Refusal_CODE_INTERNAL, err.Error(), time.Second)
	}
	return resp
}

func refuse(code wire.Refusal_Code, reason string, after time.Duration) *wire.Response {
	return &wire.Response{Refusal: &wire.Refusal{Code: code, Reason: reason, RetryAfterMs: uint64(after / time.Millisecond)}}
}

func (n *Node) answer(ctx context.Context, from string, req *wire.Request) (*wire.Response, error) {
	switch b := req.Body.(type) {
	case *wire.Request_Forward:
		ack, err := n.serveForward(ctx, b.Forward)
		return &wire.Response{Body: &wire.Response_Forward{Forward: ack}}, err
	case *wire.Request_Query:
		a, err := n.serveQuery(ctx, b.Query)
		return &wire.Response{Body: &wire.Response_Query{Query: a}}, err
	case *wire.Request_WhoOwns:
		return n.serveWhoOwns(b.WhoOwns), nil
	case *wire.Request_Show:
		return n.serveShow(b.Show)
	case *wire.Request_Status:
		a, err := n.serveStatus()
		return &wire.Response{Body: &wire.Response_Status{Status: a}}, err
	case *wire.Request_Transfer:
		return n.serveTransfer(from, b.Transfer)
	case *wire.Request_Records:
		a, err := n.serveRecords(b.Records)
		return &wire.Response{Body: &wire.Response_Records{Records: a}}, err
	}
	return refuse(wire.Refusal_CODE_UNSUPPORTED, "this peer does not know that message", 0), nil
}

// refusalError is a peer's own word that it did not serve a request.
type refusalError struct {
	code   wire.Refusal_Code
	reason string
	after  time.Duration
}

var (
	errVanished = errors.New("it has vanished")
	errForeign  = errors.New("its answer is to another question")
)

func (e *refusalError) Error() string { return fmt.Sprintf("%s: %s", e.code, e.reason) }

// call asks a peer, with this peer's View digest and a deadline. A member that
// has vanished is not waited for.
func (n *Node) call(ctx context.Context, peer string, req *wire.Request) (*wire.Response, error) {
	if n.terr.vanished(peer) {
		return nil, fmt.Errorf("%s: %w", peer, errVanished)
	}
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	req.Version = partition.WireVersion
	_, view := n.terr.views()
	req.View = binary.BigEndian.AppendUint64(nil, view.Digest())
	resp, err := n.dht.Call(ctx, peer, req)
	if err != nil {
		return nil, err
	}
	if r := resp.GetRefusal(); r != nil {
		return nil, &refusalError{r.Code, r.Reason, time.Duration(r.RetryAfterMs) * time.Millisecond}
	}
	return resp, nil
}

func (n *Node) serveWhoOwns(w *wire.WhoOwns) *wire.Response {
	k, err := partition.KeyFromWire(w.Key)
	if err != nil {
		return refuse(wire.Refusal_CODE_MALFORMED, err.Error(), 0)
	}
	s := n.store.SliceOf(k)
	a := &wire.WhoOwnsAnswer{Slice: uint64(s), Keepers: n.terr.keepers(s)}
	_, view := n.terr.views()
	if len(a.Keepers) > 0 {
		if m, ok := view.Find(a.Keepers[0]); ok {
			a.Addrs = m.Addrs
		}
	}
	return &wire.Response{Body: &wire.Response_WhoOwns{WhoOwns: a}}
}

func (n *Node) serveShow(s *wire.Show) (*wire.Response, error) {
	k, err := partition.KeyFromWire(s.Key)
	if err != nil {
		return refuse(wire.Refusal_CODE_MALFORMED, err.Error(), 0), nil
	}
	shown, err := n.showHere(k)
	if err != nil {
		return nil, err
	}
	a := &wire.ShowAnswer{Known: shown.Known}
	rec := shown.Record
	shown.Record = nil
	if a.Due, err = json.Marshal(shown); err != nil {
		return nil, err
	}
	if rec != nil {
		if a.Record, err = plain(rec); err != nil {
			return nil, err
		}
	}
	return &wire.Response{Body: &wire.Response_Show{Show: a}}, nil
}

func (n *Node) serveStatus() (*wire.StatusAnswer, error) {
	st := n.Status()
	b, err := json.Marshal(st)
	if err != nil {
		return nil, err
	}
	_, view := n.terr.views()
	return &wire.StatusAnswer{Json: b, Idle: st.Idle, Sent: uint64(n.count.linksOut.Load()), Received: uint64(n.count.linksIn.Load()),
		Seeds: uint64(st.Keys), View: view.Digest(), Done: n.done.Load()}, nil
}

// MaxRecordPage is how many records one answer to an export carries at most,
// and maxRecordBytes how many bytes of them.
const (
	MaxRecordPage  = 256
	maxRecordBytes = 1 << 20
)

// serveRecords pages through the records of the slices held here.
func (n *Node) serveRecords(r *wire.Records) (*wire.RecordsAnswer, error) {
	a := &wire.RecordsAnswer{}
	limit, size := min(int(r.Limit), MaxRecordPage), 0
	if limit == 0 {
		limit = MaxRecordPage
	}
	err := n.store.Records(partition.Key(r.After), func(rec store.Record) (bool, error) {
		if !n.terr.holds(n.store.SliceOf(rec.Key)) {
			return true, nil // on its way out; its new owner lists it
		}
		b, err := plain(rec)
		if err != nil {
			return false, err
		}
		if len(a.Records) > 0 && (len(a.Records) == limit || size+len(b) > maxRecordBytes) {
			return false, nil
		}
		a.Records, size, a.Next = append(a.Records, b), size+len(b), string(rec.Key)
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("records: %w", err)
	}
	return a, nil
}
