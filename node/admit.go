package node

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// verdict is the answer to one link that a peer or this peer wants admitted here.
type verdict struct {
	answer wire.ForwardAck_Answer
	reason string           // set if refused
	owner  string           // set if not-owner
	moved  *store.Placement // with a final answer: where the unit moved, or nil
}

// admit is the registrar's side of I1 and I2. When it returns, every final answer is durable at a
// majority of the slice's replicas. Links of slices that this peer does not own get not-owner (I5).
// Links get busy if this peer may not act in their slice now, or if no majority has them in time.
func (n *Node) admit(ctx context.Context, items []store.Admission) ([]verdict, error) {
	out, g, err := n.admitHere(items)
	if err != nil || len(g.heads) == 0 {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	late := n.replicator.Await(ctx, g.heads)
	for i, it := range items {
		s := n.target(it)
		// The slice may have been lost and won again during the wait. Then the position may belong
		// to another log than the one that has the answer.
		under, here := g.under[s]
		unsure := late[s] || here && under.Compare(n.quorum.ReplicaSet(s)) != 0
		if unsure && out[i].answer != wire.ForwardAck_ANSWER_REFUSED {
			out[i] = verdict{answer: wire.ForwardAck_ANSWER_BUSY}
		}
	}
	return out, nil
}

// ackTimeout is how long an acknowledgement may wait for a majority.
const ackTimeout = 4 * time.Second

// grounds is what answers depend on: positions of logs, and the ReplicaSets of these logs.
type grounds struct {
	heads map[partition.Slice]uint64
	under map[partition.Slice]quorum.ReplicaSet
}

// admitHere admits links into this peer's store. It holds the agreement, so no promise to another
// candidate falls between the check that this peer acts and the write.
func (n *Node) admitHere(items []store.Admission) ([]verdict, grounds, error) {
	n.agreement.RLock()
	defer n.agreement.RUnlock()
	out := make([]verdict, len(items))
	var here []store.Admission
	var at []int
	for i, it := range items {
		s := n.target(it)
		switch {
		case !n.agreement.Acts(s):
			out[i] = n.notActing(s)
		case it.Depth > n.o.MaxDepth:
			out[i] = verdict{answer: wire.ForwardAck_ANSWER_REFUSED,
				reason: fmt.Sprintf("depth %d is over --max-depth %d", it.Depth, n.o.MaxDepth)}
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
		return out, grounds{}, nil
	}
	answers, err := n.store.Queue.Admit(here, time.Now())
	if err != nil {
		return nil, grounds{}, fmt.Errorf("admit: %w", err)
	}
	g := grounds{map[partition.Slice]uint64{}, map[partition.Slice]quorum.ReplicaSet{}}
	wake, hints := map[partition.Slice][]partition.Site{}, map[partition.Slice][]store.Admission{}
	for j, a := range answers {
		if s := n.target(here[j]); a != store.Refused {
			g.heads[s], g.under[s] = n.store.Log.LogHead(s), n.quorum.ReplicaSet(s)
		}
		switch a {
		case store.Admitted:
			out[at[j]] = verdict{answer: wire.ForwardAck_ANSWER_ADMITTED}
			s := n.target(here[j])
			wake[s] = append(wake[s], here[j].Key.Site())
			if n.placer != nil && here[j].In == 0 && here[j].From != 0 {
				n.placer.Linked(here[j].Key, here[j].From)
			}
		case store.Known:
			out[at[j]] = verdict{answer: wire.ForwardAck_ANSWER_KNOWN}
			if here[j].Hint.Kind != 0 {
				s := n.target(here[j])
				hints[s] = append(hints[s], here[j])
			}
		default:
			out[at[j]] = verdict{answer: wire.ForwardAck_ANSWER_REFUSED, reason: "the store refuses it"}
		}
	}
	for j := range here {
		out[at[j]].moved = n.moved(here[j])
	}
	for s, sites := range wake {
		n.crawler.Wake(s, sites...)
	}
	for s, told := range hints {
		if err := n.crawler.ApplyHints(s, told); err != nil {
			return nil, grounds{}, fmt.Errorf("admit: %w", err)
		}
	}
	return out, g, nil
}

// notActing returns the answer for a slice in which this peer does not act.
func (n *Node) notActing(s partition.Slice) verdict {
	owner := n.quorum.Owner(s)
	if owner == n.id || owner == "" {
		return verdict{answer: wire.ForwardAck_ANSWER_BUSY}
	}
	return verdict{answer: wire.ForwardAck_ANSWER_NOT_OWNER, owner: owner}
}

// admissible returns why this peer cannot fetch a canonical Key, or nil. A Key is refused if no
// source handles it, or if its address is in a private network. The fetcher checks the address
// again after DNS, on every connection.
func (n *Node) admissible(k partition.Key) error {
	if !n.handles(k) {
		return fmt.Errorf("no source of this version fetches %s keys", k.Service())
	}
	if port, named := k.Port(); named && partition.BadPort(port) { // from an older version
		return fmt.Errorf("%w: %d belongs to another service than the web", fetch.ErrPort, port)
	}
	ip, err := netip.ParseAddr(k.Host())
	if err != nil {
		return nil // a host name
	}
	return n.client.Reachable(ip)
}

// serveForward answers another peer's links. It checks Keys exactly as it checks seeds.
func (n *Node) serveForward(ctx context.Context, f *wire.Forward) (*wire.ForwardAck, error) {
	ack := &wire.ForwardAck{Answers: make([]wire.ForwardAck_Answer, len(f.Links)),
		Reasons: make([]string, len(f.Links))}
	items := make([]store.Admission, 0, len(f.Links))
	at := make([]int, 0, len(f.Links))
	for i, l := range f.Links {
		it, err := n.admissionOf(l)
		if err != nil {
			ack.Answers[i], ack.Reasons[i] = wire.ForwardAck_ANSWER_REFUSED, err.Error()
			n.count.refused.Add(1)
			continue
		}
		items, at = append(items, it), append(at, i)
	}
	vs, err := n.admit(ctx, items)
	if err != nil {
		return nil, err
	}
	for j, v := range vs {
		ack.Answers[at[j]], ack.Reasons[at[j]] = v.answer, v.reason
		if v.moved != nil {
			ack.Moved = append(ack.Moved, &wire.Moved{Link: uint32(at[j]), To: uint64(v.moved.To), Gen: v.moved.Gen})
		}
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

// admissionOf checks a link of another peer and converts it.
func (n *Node) admissionOf(l *wire.Link) (store.Admission, error) {
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
	a := store.Admission{Key: k, Referrer: ref, Depth: int(min(l.Depth, 1<<16)), Priority: int(min(l.Priority, 255)),
		Seed: l.Seed, From: partition.Slice(l.From)}
	if a.Hint = store.ParseHint(uint64(l.Hint), l.ChangedUnix); a.Hint.Kind != 0 && ref.Site() != k.Site() {
		a.Hint.Kind = store.HintElsewhere // only a site is believed about its own pages
	}
	if l.Slice != 0 {
		if a.In, err = n.swarm.SliceFrom(l.Slice, k); err != nil {
			return store.Admission{}, err
		}
		a.Pace, a.Gen = paceOf(l.Pace)
	}
	return a, nil
}

// linkOf converts an Admission to its form in a message.
func linkOf(a store.Admission) *wire.Link {
	l := &wire.Link{Key: string(a.Key), Referrer: string(a.Referrer), Depth: uint32(a.Depth),
		Priority: uint32(a.Priority), Seed: a.Seed,
		Slice: uint64(a.In), From: uint64(a.From), Pace: wirePace(a)}
	if a.Hint.Kind != 0 {
		l.Hint, l.ChangedUnix = uint32(a.Hint.Kind), a.Hint.At.Unix()
	}
	return l
}
