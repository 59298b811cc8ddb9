package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Side is which end of an account's edges a list gives.
type Side string

// The sides.
const (
	Followers Side = "followers"
	Following Side = "following"
)

// EdgeList is one side of one account's edges.
type EdgeList struct {
	ID      string // of the account
	Acct    string // its name, for who reads a Checkpoint
	Side    Side
	Claimed int64 // by the profile, -1 = not said
	Local   bool  // of the asked server, which knows of others a part only
	Hides   bool  // the account hides its lists
}

// Page is one page of a list or a feed.
type Page[T any] struct {
	Items []T
	IDs   []string // of each of Items
	Next  string   // the cursor that goes on, "" = none
	Asked int      // items that were asked for
	Mute  bool     // nothing at all was said of how to go on, or that it ends here
	Bad   int      // elements that were no item
}

// Edges reads the followers of an account, or whom it follows, page by page. Not
// safe for concurrent use.
type Edges[T any] struct {
	service string
	page    PageOf[T]
	lim     Limits
	wrong   Word
	st      edgeState
}

// PageOf asks for the page of a list at a cursor, "" = the first. Its error is a
// *Fault.
type PageOf[T any] func(ctx context.Context, of EdgeList, cursor string) (Page[T], error)

// edgeState is what a Checkpoint keeps.
type edgeState struct {
	V       int    `json:"v"`
	ID      string `json:"id"`
	Acct    string `json:"acct"`
	Side    Side   `json:"side"`
	Claimed int64  `json:"claimed"`
	Local   bool   `json:"local"`
	Hides   bool   `json:"hides,omitempty"`
	Over    bool   `json:"over,omitempty"`
	Why     Word   `json:"why,omitempty"`
	Trail   Trail  `json:"trail"`
}

func (st edgeState) list() EdgeList {
	return EdgeList{st.ID, st.Acct, st.Side, st.Claimed, st.Local, st.Hides}
}

// Checkpoint is an Edges as bytes, to go on from in the middle of a list.
type Checkpoint []byte

const checkpointVersion = 1

// maxCheckpoint is the longest Checkpoint that is read.
const maxCheckpoint = 16 << 10

// NewEdges begins with a list, as its count was said a moment ago: the list is held
// against it.
func NewEdges[T any](service string, of EdgeList, lim Limits, page PageOf[T]) (*Edges[T], error) {
	if of.Side != Followers && of.Side != Following || of.ID == "" {
		return nil, fmt.Errorf("%s: edges: no list %q of account id %q", service, of.Side, of.ID)
	}
	if err := lim.Validate(); err != nil {
		return nil, err
	}
	return &Edges[T]{service: service, page: page, lim: lim.WithDefaults(), st: edgeState{
		V: checkpointVersion, ID: of.ID, Acct: of.Acct, Side: of.Side, Claimed: max(of.Claimed, -1), Local: of.Local,
		Hides: of.Hides,
	}}, nil
}

// ResumeEdges goes on where a Checkpoint was taken.
func ResumeEdges[T any](service string, from Checkpoint, lim Limits, page PageOf[T]) (*Edges[T], error) {
	if err := lim.Validate(); err != nil {
		return nil, err
	}
	st, err := readEdgeState(from)
	if err != nil {
		return nil, fmt.Errorf("%s: edges: checkpoint: %w", service, err)
	}
	return &Edges[T]{service: service, page: page, lim: lim.WithDefaults(), st: st}, nil
}

// Distrust has the list end with why: nothing is asked for, and nothing delivered.
func (e *Edges[T]) Distrust(why Word) { e.wrong = why }

// Of is whose list it is.
func (e *Edges[T]) Of() EdgeList { return e.st.list() }

func readEdgeState(b []byte) (edgeState, error) {
	var st edgeState
	if len(b) > maxCheckpoint {
		return st, fmt.Errorf("%d bytes, at most %d", len(b), maxCheckpoint)
	}
	if err := json.Unmarshal(b, &st); err != nil {
		return st, err
	}
	switch {
	case st.V != checkpointVersion:
		return st, fmt.Errorf("version %d, want %d", st.V, checkpointVersion)
	case st.ID == "" || st.Side != Followers && st.Side != Following || st.Claimed < -1:
		return st, errors.New("out of range")
	}
	return st, st.Trail.Valid()
}

// Checkpoint is where e stands. It is to be kept together with the page that
// Next gave last.
func (e *Edges[T]) Checkpoint() Checkpoint {
	b, err := json.Marshal(e.st)
	if err != nil {
		panic(fmt.Sprintf("service: edges: %v", err)) // plain fields
	}
	return b
}

// Done says whether the list has ended.
func (e *Edges[T]) Done() bool { return e.st.Over }

// Listing is how the list stands.
func (e *Edges[T]) Listing() Listing {
	return Listing{Complete: e.st.Over && e.st.Why == "", Why: e.st.Why, Claimed: e.st.Claimed, Seen: e.st.Trail.Seen,
		Pages: e.st.Trail.Pages, Strange: e.st.Trail.Strange}
}

// Next is the next page: the items that are new in it, none after the end. After a Fault that
// is Again the same page may be asked for once more; after any other the list is Done, incomplete.
func (e *Edges[T]) Next(ctx context.Context) ([]T, error) {
	if e.st.Over {
		return nil, nil
	}
	if e.wrong != "" {
		e.st.Over, e.st.Why = true, e.wrong
		return nil, nil
	}
	p, err := e.page(ctx, e.st.list(), e.st.Trail.Cursor)
	if err != nil {
		e.failed(err)
		return nil, err
	}
	e.st.Why = "" // a fault before this page has passed
	e.st.Trail.Strange += p.Bad
	fresh, stop, over := e.st.Trail.Took(p.IDs, p.Next, e.lim)
	out := p.Items[:0]
	for i, item := range p.Items {
		if fresh[i] {
			out = append(out, item)
		}
	}
	if over {
		e.end(stop, p.Mute && len(p.Items) >= p.Asked)
	}
	return out, nil
}

// failed notes why the list stopped; for good, when asking again would not help.
func (e *Edges[T]) failed(err error) {
	if e.st.Why = WordOf(err); e.st.Why == "" {
		e.st.Why = Unreachable
	}
	e.st.Over = !Again(err)
}

// end judges a list that has no further page. cut says that its last page was
// full and nothing was said of a next one.
func (e *Edges[T]) end(stop Word, cut bool) {
	e.st.Over = true
	switch t := &e.st.Trail; {
	case stop != "":
		e.st.Why = stop
	case t.Seen == 0 && e.st.Hides:
		e.st.Why = Hidden
	default:
		e.st.Why = claimFault(e.st.Claimed, t.Seen, e.st.Local)
		if cut && (e.st.Why == FewerThanClaim || e.st.Claimed < 0) {
			e.st.Why = NoCursor
		}
	}
	if e.st.Why == CursorRepeats || e.st.Why == NothingNew { // a server without pages that gave all it claims gave all
		if e.st.Claimed > 0 && e.st.Trail.Seen == e.st.Claimed {
			e.st.Why = ""
		}
	}
}

// claimFault holds what a list delivered against its count. Up to 2 % may be
// missing: accounts that are suspended are counted, and not listed. As many and two more
// may be too many: people follow while the list is read.
func claimFault(claimed, seen int64, local bool) Word {
	slack := claimed / 50
	switch {
	case claimed < 0:
		return ""
	case seen == 0 && claimed > 0 && local:
		return EmptyButClaims
	case seen < claimed-slack && !local:
		return KnownPartOnly
	case seen < claimed-slack:
		return FewerThanClaim
	case seen > claimed+slack+2:
		return MoreThanClaim
	}
	return ""
}
