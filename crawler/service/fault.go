package service

import (
	"errors"
	"fmt"
	"time"
)

// Word is the reason why something is missing or incomplete. It is used for counts, for the ledger
// of gaps, and to branch on.
type Word string

// Reasons why one response does not contain what was requested.
const (
	Gone        Word = "gone"        // 404 or 410 for an id or name
	NeedsToken  Word = "needs-token" // 401, or 422 with such a message
	Closed      Word = "closed"      // 403, or a timeline that the server calls disabled
	Unsupported Word = "unsupported" // the server has no such endpoint
	Refused     Word = "refused"     // another 4xx
	Limited     Word = "limited"     // 429
	Spent       Word = "spent"       // no budget or quota left; retry in the next month
	Down        Word = "down"        // 5xx
	Unreachable Word = "unreachable" // no response, or Do refused: Fault.Err has the cause
	// 3xx to Fault.To; not followed: a credential is for one server
	Moved     Word = "moved"
	NotJSON   Word = "not-json"  // HTML or an empty body, with any good status
	Misshapen Word = "misshapen" // JSON of another shape than requested
	Cut       Word = "body-size" // longer than Options.MaxBody
)

// Reasons why a list or a reading ends incomplete.
const (
	CursorRepeats  Word = "cursor-repeats"    // a cursor or a page came a second time
	NothingNew     Word = "nothing-new"       // only known items: the server ignores parameters
	NoCursor       Word = "no-cursor"         // a full page that does not say how to continue
	EmptyPages     Word = "empty-pages"       // more empty pages in a row than Limits.Empty
	MaxPages       Word = "max-pages"         // Limits.Pages
	MaxItems       Word = "max-items"         // Limits.Items
	EmptyButClaims Word = "empty-but-claimed" // no items, but the count is not 0
	FewerThanClaim Word = "fewer-than-claimed"
	MoreThanClaim  Word = "more-than-claimed"
	KnownPartOnly  Word = "known-part-only" // a remote account: its home server has the whole list
	Hidden         Word = "hidden"          // the account hides its lists
	NotTheirs      Word = "not-theirs"      // the list is that of the credential's own account
	Doubted        Word = "doubted"         // perhaps the list of the credential's own account
	FarEnough      Word = "far-enough"      // Reading.Back
	ShowsNoMore    Word = "shows-no-more"   // the service stores more than it shows: Reading.Most
)

// Obeys is how a server treats a parameter.
type Obeys string

// The possible treatments; "" = not known.
const (
	Obeyed  Obeys = "obeyed"
	Ignored Obeys = "ignored"
	// Newest is how some servers treat Mastodon's min_id. They return the newest page after that
	// post, as since_id means, and not the next page.
	Newest Obeys = "newest"
)

// Fault is the error of one request that did not return what was requested.
type Fault struct {
	Service string // the client: mastodon, bluesky, twitter
	Op      string // lookup, account, statuses, ...
	Word    Word
	Status  int      // 0 = no response
	Code    string   // the server's own error code, if the service has codes
	Said    string   // the server's own message, at most 200 bytes
	Names   []string // requested values that the server calls wrong; capped by the client
	To      string   // for Moved: the Location header, unchanged, at most 1 KiB
	// FromAPI says that the response was JSON. A 404 in HTML may come from a web server in front of
	// the API. It is a weak reason to treat something as gone.
	FromAPI bool
	Retry   time.Duration // Retry-After, <0 = none
	Err     error         // of Do, if there was no response
}

// Error returns the operation and the result.
func (f *Fault) Error() string {
	text := f.Service + ": " + f.Op + ": " + string(f.Word)
	if f.Status != 0 {
		text += fmt.Sprintf(" (status %d)", f.Status)
	}
	if f.Said != "" {
		text += fmt.Sprintf(": %q", f.Said)
	}
	if f.Err != nil {
		text += ": " + f.Err.Error()
	}
	return text
}

// Unwrap returns the error of Do.
func (f *Fault) Unwrap() error { return f.Err }

// Again reports whether a later retry may succeed: the server is limited, down or unreachable, or
// returned something that no API returns.
func (f *Fault) Again() bool {
	switch f.Word {
	case Limited, Down, Unreachable, NotJSON, Misshapen:
		return true
	}
	return false
}

// WordOf returns the Word of a Fault, "" for any other error.
func WordOf(err error) Word {
	var f *Fault
	if errors.As(err, &f) {
		return f.Word
	}
	return ""
}

// Again reports whether err is a Fault that may pass.
func Again(err error) bool {
	var f *Fault
	return errors.As(err, &f) && f.Again()
}
