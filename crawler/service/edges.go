package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Side selects one of the two lists of an account's edges.
type Side string

// The sides.
const (
	Followers Side = "followers"
	Following Side = "following"
)

// EdgeList is one side of one account's edges.
type EdgeList struct {
	ID      string // of the account
	Acct    string // account name, for readers of a Checkpoint
	Side    Side
	Claimed int64 // by the profile, -1 = unknown
	// the account is local to the server; a server knows only a part of other accounts' lists
	Local bool
	Hides bool // the account hides its lists
}

// Page is one page of a list or a feed.
type Page[T any] struct {
	Items []T
	IDs   []string // ID of each of Items
	Next  string   // the cursor of the next page, "" = none
	Asked int      // number of items requested
	Mute  bool     // the response says neither how to continue nor that the list ends
	Bad   int      // elements that could not be read
}

// Edges reads the followers of an account, or the accounts that it follows, page by page. It is not
// safe for concurrent use.
type Edges[T any] struct {
	service string
	page    PageOf[T]
	lim     Limits
	wrong   Word
	st      edgeState
}

// PageOf fetches the page of a list at a cursor, "" = the first page. Its error is a *Fault.
type PageOf[T any] func(ctx context.Context, of EdgeList, cursor string) (Page[T], error)

// edgeState is the content of a Checkpoint.
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

// Checkpoint is the state of an Edges as bytes. Reading can resume from it in the middle of a list.
type Checkpoint []byte

const checkpointVersion = 1

// maxCheckpoint is the longest accepted Checkpoint, in bytes.
const maxCheckpoint = 16 << 10

// NewEdges starts to read a list. The count in of should be recent: the list is compared with it.
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

// ResumeEdges continues from a Checkpoint.
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

// Distrust makes the next call of Next end the list with why, without a request or items.
func (e *Edges[T]) Distrust(why Word) { e.wrong = why }

// Of returns the list that e reads.
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

// Checkpoint returns the state of e. The caller stores it together with the last page of Next.
func (e *Edges[T]) Checkpoint() Checkpoint {
	b, err := json.Marshal(e.st)
	if err != nil {
		panic(fmt.Sprintf("service: edges: %v", err)) // cannot happen: plain fields
	}
	return b
}

// Done reports whether the list has ended.
func (e *Edges[T]) Done() bool { return e.st.Over }

// Listing returns the progress of the list.
func (e *Edges[T]) Listing() Listing {
	return Listing{Complete: e.st.Over && e.st.Why == "", Why: e.st.Why, Claimed: e.st.Claimed, Seen: e.st.Trail.Seen,
		Pages: e.st.Trail.Pages, Strange: e.st.Trail.Strange}
}

// Next returns the new items of the next page, none after the end. If a Fault is Again, the caller
// may retry the same page. After any other error the list is Done and incomplete.
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
	e.st.Why = "" // an earlier fault of this page has passed
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

// failed records why the list stopped. The list is over if a retry does not help.
func (e *Edges[T]) failed(err error) {
	if e.st.Why = WordOf(err); e.st.Why == "" {
		e.st.Why = Unreachable
	}
	e.st.Over = !Again(err)
}

// end sets the result of a list that has no further page. cut says that the last page was full and
// its response did not say how to continue.
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
	// a server without paging repeats its only page; the list is complete if it has the claimed
	// number
	if e.st.Why == CursorRepeats || e.st.Why == NothingNew {
		if e.st.Claimed > 0 && e.st.Trail.Seen == e.st.Claimed {
			e.st.Why = ""
		}
	}
}

// claimFault compares the items of a list with its count. Up to 2 % may be missing, because
// suspended accounts are counted but not listed. There may also be 2 % and two more than claimed,
// because people follow while the list is read.
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
