package node

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// verdict is what became of one link that somebody wants admitted here.
type verdict struct {
	answer wire.ForwardAck_Answer
	reason string // for refused
	owner  string // for not-owner
}

// admit is the registrar's side of I1 and I2: every answer that is final is
// durable when it returns. Links of slices that this peer does not act in get
// not-owner (I5) or, when it owns but still awaits them, busy.
func (n *Node) admit(items []store.Admission) ([]verdict, error) {
	n.admitting.RLock()
	defer n.admitting.RUnlock()
	out := make([]verdict, len(items))
	var here []store.Admission
	var at []int
	for i, it := range items {
		s := n.store.SliceOf(it.Key)
		switch {
		case !n.terr.acts(s):
			out[i] = n.notActing(s)
		case it.Depth > n.o.MaxDepth:
			out[i] = verdict{answer: wire.ForwardAck_ANSWER_REFUSED, reason: fmt.Sprintf("depth %d is over --max-depth %d", it.Depth, n.o.MaxDepth)}
		default:
			if err := n.admissible(it.Key); err != nil {
				out[i] = verdict{answer: wire.ForwardAck_ANSWER_REFUSED, reason: err.Error()}
				n.count.refused.Add(1)
				continue
			}
			here, at = append(here, it), append(at, i)
		}
	}
	if len(here) == 0 {
		return out, nil
	}
	answers, err := n.store.Admit(here, time.Now())
	if err != nil {
		return nil, fmt.Errorf("admit: %w", err)
	}
	wake := map[partition.Slice][]partition.Site{}
	for j, a := range answers {
		switch a {
		case store.Admitted:
			out[at[j]] = verdict{answer: wire.ForwardAck_ANSWER_ADMITTED}
			s := n.store.SliceOf(here[j].Key)
			wake[s] = append(wake[s], here[j].Key.Site())
		case store.Known:
			out[at[j]] = verdict{answer: wire.ForwardAck_ANSWER_KNOWN}
		default:
			out[at[j]] = verdict{answer: wire.ForwardAck_ANSWER_REFUSED, reason: "the store refuses it"}
		}
	}
	for s, sites := range wake {
		n.crawler.Wake(s, sites...)
	}
	return out, nil
}

// settleAdmissions waits for those that began while a slice was still acted in.
func (n *Node) settleAdmissions() {
	n.admitting.Lock()
	defer n.admitting.Unlock()
}

func (n *Node) notActing(s partition.Slice) verdict {
	owner := n.terr.owner(s)
	if owner == n.id || owner == "" {
		return verdict{answer: wire.ForwardAck_ANSWER_BUSY}
	}
	return verdict{answer: wire.ForwardAck_ANSWER_NOT_OWNER, owner: owner}
}

// admissible is what a Key must be beside canonical: something this peer can
// fetch, and no address inside a private network (the fetcher checks again
// after DNS, on every dial).
func (n *Node) admissible(k partition.Key) error {
	if !n.handles(k) {
		return fmt.Errorf("no source of this version fetches %s keys", k.Service())
	}
	u, err := url.Parse(k.URL())
	if err != nil {
		return fmt.Errorf("not a URL: %w", err)
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return nil // a name
	}
	return n.client.Reachable(ip)
}

// serveForward answers another peer's links. Keys are checked at this gate
// exactly as seeds are.
func (n *Node) serveForward(_ context.Context, f *wire.Forward) (*wire.ForwardAck, error) {
	ack := &wire.ForwardAck{Answers: make([]wire.ForwardAck_Answer, len(f.Links)), Reasons: make([]string, len(f.Links))}
	items := make([]store.Admission, 0, len(f.Links))
	at := make([]int, 0, len(f.Links))
	for i, l := range f.Links {
		it, err := admissionOf(l)
		if err != nil {
			ack.Answers[i], ack.Reasons[i] = wire.ForwardAck_ANSWER_REFUSED, err.Error()
			n.count.refused.Add(1)
			continue
		}
		items, at = append(items, it), append(at, i)
	}
	vs, err := n.admit(items)
	if err != nil {
		return nil, err
	}
	for j, v := range vs {
		ack.Answers[at[j]], ack.Reasons[at[j]] = v.answer, v.reason
		switch v.answer {
		case wire.ForwardAck_ANSWER_NOT_OWNER:
			ack.Owner = v.owner
		case wire.ForwardAck_ANSWER_BUSY:
			ack.RetryAfterMs = 500
		default:
			n.count.linksIn.Add(1)
		}
	}
	return ack, nil
}

func admissionOf(l *wire.Link) (store.Admission, error) {
	k, err := partition.KeyFromWire(l.Key)
	if err != nil {
		return store.Admission{}, err
	}
	var ref partition.Key
	if l.Referrer != "" {
		if ref, err = partition.KeyFromWire(l.Referrer); err != nil {
			return store.Admission{}, fmt.Errorf("referrer: %w", err)
		}
	}
	return store.Admission{Key: k, Referrer: ref, Depth: int(min(l.Depth, 1<<16)), Priority: int(min(l.Priority, 255)), Seed: l.Seed}, nil
}

func linkOf(a store.Admission) *wire.Link {
	return &wire.Link{Key: string(a.Key), Referrer: string(a.Referrer), Depth: uint32(a.Depth), Priority: uint32(a.Priority), Seed: a.Seed}
}
