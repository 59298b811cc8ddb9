package forward

import (
	"context"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Verdict is the answer to one link that a peer or this peer wants admitted.
type Verdict struct {
	Answer wire.ForwardAck_Answer
	Reason string           // set if refused, and if busy because the owner did not answer
	Owner  string           // set if not-owner
	Moved  *store.Placement // with a final answer: where the unit moved (To and Gen), or nil
}

// Final reports whether the answer is the last one for the link (I2).
func (v Verdict) Final() bool {
	return v.Answer == wire.ForwardAck_ANSWER_ADMITTED || v.Answer == wire.ForwardAck_ANSWER_KNOWN ||
		v.Answer == wire.ForwardAck_ANSWER_REFUSED
}

// Registrar admits the links of this peer's slices. Its methods are safe for concurrent use.
type Registrar struct{ o Options }

// NewRegistrar returns a Registrar.
func NewRegistrar(o Options) *Registrar { return &Registrar{o} }

// Admit is the registrar's side of I1 and I2. When it returns, every final answer is durable at a
// majority of the slice's replicas. Links of slices that this peer does not own get not-owner (I5).
// Links get busy if this peer may not act in their slice now, or if no majority has them in time.
func (r *Registrar) Admit(ctx context.Context, items []store.Admission) ([]Verdict, error) {
	out, on, err := r.admitHere(items)
	if err != nil || len(on.heads) == 0 {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, AckTimeout)
	defer cancel()
	late := r.o.Replicator.Await(ctx, on.heads)
	for i, it := range items {
		s := r.target(it)
		// The slice may have been lost and won again during the wait. Then the position may belong
		// to another log than the one that has the answer.
		under, here := on.under[s]
		unsure := late[s] || here && under.Compare(r.o.Quorum.ReplicaSet(s)) != 0
		if unsure && out[i].Answer != wire.ForwardAck_ANSWER_REFUSED {
			out[i] = Verdict{Answer: wire.ForwardAck_ANSWER_BUSY}
		}
	}
	return out, nil
}

// AckTimeout is how long an acknowledgement may wait for a majority.
const AckTimeout = 4 * time.Second

// grounds is what answers depend on: positions of logs, and the ReplicaSets of these logs.
type grounds struct {
	heads map[partition.Slice]uint64
	under map[partition.Slice]quorum.ReplicaSet
}

// admitHere admits links into this peer's store. It holds the agreement, so no promise to another
// candidate falls between the check that this peer acts and the write.
func (r *Registrar) admitHere(items []store.Admission) ([]Verdict, grounds, error) {
	r.o.Agreement.RLock()
	defer r.o.Agreement.RUnlock()
	out := make([]Verdict, len(items))
	var here []store.Admission
	var at []int
	for i, it := range items {
		s := r.target(it)
		switch {
		case !r.o.Agreement.Acts(s):
			out[i] = r.notActing(s)
		case it.Depth > r.o.MaxDepth:
			out[i] = Verdict{Answer: wire.ForwardAck_ANSWER_REFUSED,
				Reason: fmt.Sprintf("depth %d is over --max-depth %d", it.Depth, r.o.MaxDepth)}
		default:
			if err := r.o.Admissible(it.Key); err != nil {
				out[i] = Verdict{Answer: wire.ForwardAck_ANSWER_REFUSED, Reason: err.Error()}
				r.o.Counts.Refused.Add(1)
				continue
			}
			here, at = append(here, it), append(at, i)
		}
	}
	if len(here) == 0 {
		return out, grounds{}, nil
	}
	answers, err := r.o.Store.Queue.Admit(here, time.Now())
	if err != nil {
		return nil, grounds{}, fmt.Errorf("admit: %w", err)
	}
	g := grounds{map[partition.Slice]uint64{}, map[partition.Slice]quorum.ReplicaSet{}}
	wake, hints := map[partition.Slice][]partition.Site{}, map[partition.Slice][]store.Admission{}
	for j, a := range answers {
		if s := r.target(here[j]); a != store.Refused {
			g.heads[s], g.under[s] = r.o.Store.Log.LogHead(s), r.o.Quorum.ReplicaSet(s)
		}
		switch a {
		case store.Admitted:
			out[at[j]] = Verdict{Answer: wire.ForwardAck_ANSWER_ADMITTED}
			s := r.target(here[j])
			wake[s] = append(wake[s], here[j].Key.Site())
			if r.o.Placer != nil && here[j].In == 0 && here[j].From != 0 {
				r.o.Placer.Linked(here[j].Key, here[j].From)
			}
		case store.Known:
			out[at[j]] = Verdict{Answer: wire.ForwardAck_ANSWER_KNOWN}
			if here[j].Hint.Kind != 0 {
				s := r.target(here[j])
				hints[s] = append(hints[s], here[j])
			}
		default:
			out[at[j]] = Verdict{Answer: wire.ForwardAck_ANSWER_REFUSED, Reason: "the store refuses it"}
		}
	}
	for j := range here {
		out[at[j]].Moved = r.moved(here[j])
	}
	for s, sites := range wake {
		r.o.Crawler.Wake(s, sites...)
	}
	for s, told := range hints {
		if err := r.o.Crawler.ApplyHints(s, told); err != nil {
			return nil, grounds{}, fmt.Errorf("admit: %w", err)
		}
	}
	return out, g, nil
}

// notActing returns the answer for a slice in which this peer does not act.
func (r *Registrar) notActing(s partition.Slice) Verdict {
	owner := r.o.Quorum.Owner(s)
	if owner == r.o.Self || owner == "" {
		return Verdict{Answer: wire.ForwardAck_ANSWER_BUSY}
	}
	return Verdict{Answer: wire.ForwardAck_ANSWER_NOT_OWNER, Owner: owner}
}

// Serve answers another peer's links. It checks Keys exactly as it checks seeds.
func (r *Registrar) Serve(ctx context.Context, f *wire.Forward) (*wire.ForwardAck, error) {
	ack := &wire.ForwardAck{Answers: make([]wire.ForwardAck_Answer, len(f.Links)),
		Reasons: make([]string, len(f.Links))}
	items := make([]store.Admission, 0, len(f.Links))
	at := make([]int, 0, len(f.Links))
	for i, l := range f.Links {
		it, err := r.admissionOf(l)
		if err != nil {
			ack.Answers[i], ack.Reasons[i] = wire.ForwardAck_ANSWER_REFUSED, err.Error()
			r.o.Counts.Refused.Add(1)
			continue
		}
		items, at = append(items, it), append(at, i)
	}
	vs, err := r.Admit(ctx, items)
	if err != nil {
		return nil, err
	}
	for j, v := range vs {
		ack.Answers[at[j]], ack.Reasons[at[j]] = v.Answer, v.Reason
		if v.Moved != nil {
			ack.Moved = append(ack.Moved, &wire.Moved{Link: uint32(at[j]), To: uint64(v.Moved.To), Gen: v.Moved.Gen})
		}
		switch v.Answer {
		case wire.ForwardAck_ANSWER_NOT_OWNER:
			ack.Owner = v.Owner
		case wire.ForwardAck_ANSWER_BUSY:
			ack.RetryAfterMs = 500
		default:
			r.o.Counts.LinksIn.Add(1)
		}
	}
	return ack, nil
}

// target returns the slice of an item: the one in which it was placed, or its hash slice.
func (r *Registrar) target(it store.Admission) partition.Slice {
	if it.In != 0 {
		return it.In
	}
	return r.o.Store.SliceOf(it.Key)
}

// moved returns where the unit of an item of a geo slice has moved to, or nil if it is still here.
func (r *Registrar) moved(it store.Admission) *store.Placement {
	if r.o.Placer == nil || it.In == 0 {
		return nil
	}
	p, err := r.o.Store.Queue.PlacementOf(it.In, it.Key)
	if err != nil || p.To == it.In || p.Gen <= it.Gen {
		return nil // if unknown now, the next link finds it
	}
	return &p
}
