// Package forward brings links to the peers that own their slices.
//
//   - A Registrar admits the links of the slices that this peer owns, whether they come from its own
//     crawl or from another peer (invariants I1, I2, I5).
//   - A Forwarder sends the links in this peer's outbox to their owners. A link stays in the outbox,
//     which is on the disk, until its owner gives a final answer (I2, I3).
//   - Seeds take the same way without the outbox. A person waits for the answer and for its reason,
//     and a peer that has just joined owns no slice, so it has no outbox that others would take over.
//
// Links of a slice in another zone go to the owner that a lookup finds. The lookup runs beside the
// Forwarder, which leaves the links in the outbox meanwhile.
package forward

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/dht/zone"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/node/geoplace"
	"github.com/echo-node/echo-node/node/replica"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/node/replica/replicate"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// Peers is how the other peers are known and called.
type Peers interface {
	Call(ctx context.Context, peer string, req *wire.Request) (*wire.Response, error)
	// Foreign reports whether a slice belongs to another zone and this peer does not still own it.
	Foreign(s partition.Slice) bool
	// KnownOwner returns the owner of a slice of another zone, if a lookup has found it.
	KnownOwner(s partition.Slice) (zone.Owner, bool)
	// FindOwner looks it up.
	FindOwner(ctx context.Context, s partition.Slice) (zone.Owner, error)
	// ForgetOwner forgets that peer is the owner of a slice of another zone.
	ForgetOwner(s partition.Slice, peer string)
	// SliceFrom decodes a slice that another peer names for k, or returns an error if k cannot be
	// in that slice.
	SliceFrom(v uint64, k partition.Key) (partition.Slice, error)
}

// Crawler is what the crawler hears of links that were admitted.
type Crawler interface {
	// Wake reports that sites of an owned slice have new links.
	Wake(s partition.Slice, sites ...partition.Site)
	// ApplyHints applies the hints of links to known Keys.
	ApplyHints(s partition.Slice, links []store.Admission) error
}

// Reasons explains in words why a peer did not answer.
type Reasons interface {
	Reason(ctx context.Context, peer string, err error) string
}

// Options are the options of a Registrar and a Forwarder.
type Options struct {
	Self       string // this peer
	MaxDepth   int    // links deeper than this are refused
	Store      *db.Store
	Quorum     *quorum.Machine
	Agreement  *replica.Agreement
	Replicator *replicate.Replicator
	Placer     *geoplace.Placer // nil in hash mode
	Crawler    Crawler
	Peers      Peers
	Reasons    Reasons
	// Admissible returns why this peer cannot fetch a canonical Key, or nil.
	Admissible func(partition.Key) error
	Counts     *Counts
	Logger     *slog.Logger
}

// Counts are numbers of links since the start.
type Counts struct {
	LinksOut atomic.Int64 // final answers of other peers
	LinksIn  atomic.Int64 // links of other peers that were admitted, known or refused by the store
	Refused  atomic.Int64 // links refused because this peer cannot fetch them
}

// noAnswer is the error of ask if the owner gave no answer: the cause.
type noAnswer struct{ error }

// Unwrap returns the cause.
func (e noAnswer) Unwrap() error { return e.error }

// unanswered reports whether err is that the owner gave no answer, and not an error of the store.
func unanswered(err error) bool { return errors.As(err, new(noAnswer)) }

// retrySoon is how long to wait before links are sent again that got an answer, but no final one.
const retrySoon = 200 * time.Millisecond

// ask gets the answers to items from this peer's own Registrar, or from another peer. It also
// returns how long to wait before those without a final answer are sent again. The error is a
// noAnswer, or it is an error of the store.
func (f *Forwarder) ask(ctx context.Context, owner string, items []store.Admission) ([]Verdict, time.Duration,
	error) {
	if owner == f.o.Self {
		vs, err := f.admits.Admit(ctx, items)
		return vs, retrySoon, err
	}
	if owner == "" {
		return nil, 0, noAnswer{errors.New("the owner is not known")}
	}
	req := &wire.Forward{Links: make([]*wire.Link, len(items))}
	for i, it := range items {
		req.Links[i] = linkOf(it)
	}
	resp, err := f.o.Peers.Call(ctx, owner, &wire.Request{Body: &wire.Request_Forward{Forward: req}})
	if err != nil {
		return nil, 0, noAnswer{err}
	}
	ack := resp.GetForward()
	if len(ack.GetAnswers()) != len(items) {
		f.o.Logger.Warn("forward: answers do not match links", "peer", owner, "links", len(items), "answers",
			len(ack.GetAnswers()))
		return nil, 0, noAnswer{call.Busy("its answer does not match the question", MaxBackoff)}
	}
	out := make([]Verdict, len(items))
	for i, a := range ack.Answers {
		out[i] = Verdict{Answer: a}
		if i < len(ack.Reasons) {
			out[i].Reason = ack.Reasons[i]
		}
		if out[i].Final() {
			f.o.Counts.LinksOut.Add(1)
		}
	}
	for _, m := range ack.Moved { // wire has checked that m.Link is an index of Answers
		out[m.Link].Moved = &store.Placement{To: partition.Slice(m.To), Gen: m.Gen}
	}
	return out, max(retrySoon, time.Duration(ack.RetryAfterMs)*time.Millisecond), nil
}
