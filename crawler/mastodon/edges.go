package mastodon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
)

// Side is which end of an account's edges a list gives.
type Side string

// The sides.
const (
	Followers Side = "followers"
	Following Side = "following"
)

// edgePage is how many accounts a page is asked for: Mastodon's most.
const edgePage = 80

// Edges reads the followers of an account, or whom it follows, page by page. Not
// safe for concurrent use.
type Edges struct {
	c   *Client
	lim Limits
	own bool
	st  edgeState
}

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
	Trail   trail  `json:"trail"`
}

// Checkpoint is an Edges as bytes, to go on from in the middle of a list.
type Checkpoint []byte

const checkpointVersion = 1

// maxCheckpoint is the longest Checkpoint that is read.
const maxCheckpoint = 16 << 10

// Edges begins with the list of p, as its server showed it a moment ago: its count
// is what the list is held against. lists is the server's Server.Lists, "" = not probed.
func (c *Client) Edges(p Profile, side Side, lists Word, lim Limits) (*Edges, error) {
	if side != Followers && side != Following || p.ID == "" {
		return nil, fmt.Errorf("mastodon: edges: no list %q of account id %q", side, p.ID)
	}
	if err := lim.validate(); err != nil {
		return nil, err
	}
	claimed := p.Followers
	if side == Following {
		claimed = p.Following
	}
	return &Edges{c: c, lim: lim.withDefaults(), own: lists == NotTheirs && side == Following, st: edgeState{
		V: checkpointVersion, ID: p.ID, Acct: p.Acct, Side: side, Claimed: claimed, Local: p.Local, Hides: p.HidesLists == Yes,
	}}, nil
}

// ResumeEdges goes on where a Checkpoint was taken.
func (c *Client) ResumeEdges(from Checkpoint, lists Word, lim Limits) (*Edges, error) {
	if err := lim.validate(); err != nil {
		return nil, err
	}
	st, err := readEdgeState(from)
	if err != nil {
		return nil, fmt.Errorf("mastodon: edges: checkpoint: %w", err)
	}
	return &Edges{c: c, lim: lim.withDefaults(), own: lists == NotTheirs && st.Side == Following, st: st}, nil
}

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
	return st, st.Trail.valid()
}

// Checkpoint is where e stands. It is to be kept together with the page that
// Next gave last.
func (e *Edges) Checkpoint() Checkpoint {
	b, err := json.Marshal(e.st)
	if err != nil {
		panic(fmt.Sprintf("mastodon: edges: %v", err)) // plain fields
	}
	return b
}

// Done says whether the list has ended.
func (e *Edges) Done() bool { return e.st.Over }

// Listing is how the list stands.
func (e *Edges) Listing() Listing {
	return Listing{Complete: e.st.Over && e.st.Why == "", Why: e.st.Why, Claimed: e.st.Claimed, Seen: e.st.Trail.Seen, Pages: e.st.Trail.Pages, Strange: e.st.Trail.Strange}
}

// Next is the next page: the profiles that are new in it, none after the end. After a Fault that
// is Again the same page may be asked for once more; after any other the list is Done, incomplete.
func (e *Edges) Next(ctx context.Context) ([]Profile, error) {
	if e.st.Over {
		return nil, nil
	}
	class := ClassFollowers
	if e.st.Side == Following {
		class = ClassFollowing
	}
	query, err := url.ParseQuery(e.st.Trail.Cursor)
	if err != nil {
		return nil, fmt.Errorf("mastodon: edges: cursor: %w", err)
	}
	query.Set("limit", strconv.Itoa(edgePage))
	a, err := e.c.get(ctx, ask{string(e.st.Side), class, "/api/v1/accounts/" + url.PathEscape(e.st.ID) + "/" + string(e.st.Side), query})
	if err != nil {
		e.failed(err)
		return nil, err
	}
	all, bad, ok := e.c.profiles(a.body)
	if !ok {
		err := misshapen(string(e.st.Side))
		e.failed(err)
		return nil, err
	}
	ids := make([]string, len(all))
	for i, p := range all {
		ids[i] = p.ID
	}
	e.st.Why = "" // a fault before this page has passed
	e.st.Trail.Strange += bad
	fresh, stop, over := e.st.Trail.took(ids, a.next, e.lim)
	out := all[:0]
	for i, p := range all {
		if fresh[i] {
			out = append(out, p)
		}
	}
	if over {
		e.end(stop, !a.link && len(all) >= edgePage)
	}
	return out, nil
}

// failed notes why the list stopped; for good, when asking again would not help.
func (e *Edges) failed(err error) {
	if e.st.Why = WordOf(err); e.st.Why == "" {
		e.st.Why = Unreachable
	}
	e.st.Over = !again(err)
}

// end judges a list that has no further page. cut says that its last page was
// full and nothing was said of a next one.
func (e *Edges) end(stop Word, cut bool) {
	e.st.Over = true
	switch t := &e.st.Trail; {
	case e.own:
		e.st.Why = NotTheirs
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
