package service

import (
	"errors"
	"fmt"
	"time"
)

// Word is why something was not had, or not whole: for counts, for the gap ledger, and to
// branch on.
type Word string

// What one answer may be instead of what was asked for.
const (
	Gone        Word = "gone"        // 404 or 410 for a thing by its id or name
	NeedsToken  Word = "needs-token" // 401, or 422 that says so
	Closed      Word = "closed"      // 403, or a timeline that its server says is disabled
	Unsupported Word = "unsupported" // the server has no such endpoint
	Refused     Word = "refused"     // another 4xx
	Limited     Word = "limited"     // 429
	Spent       Word = "spent"       // the money or the number of a month: not again before it is over
	Down        Word = "down"        // 5xx
	Unreachable Word = "unreachable" // no answer: Fault.Err says why; also what Do refused
	Moved       Word = "moved"       // 3xx: Fault.To says where; not followed, a credential is for one server
	NotJSON     Word = "not-json"    // HTML or nothing, with whatever good status
	Misshapen   Word = "misshapen"   // JSON, but not what was asked for
	Cut         Word = "body-size"   // longer than Options.MaxBody
)

// How a list or a reading may end without being whole.
const (
	CursorRepeats  Word = "cursor-repeats"    // a cursor or a page came a second time
	NothingNew     Word = "nothing-new"       // pages of what was fetched already: the server ignores its parameters
	NoCursor       Word = "no-cursor"         // a full page, and no word of how to go on
	EmptyPages     Word = "empty-pages"       // more empty pages in a row than Limits.Empty
	MaxPages       Word = "max-pages"         // Limits.Pages
	MaxItems       Word = "max-items"         // Limits.Items
	EmptyButClaims Word = "empty-but-claimed" // nothing delivered where the count says there is something
	FewerThanClaim Word = "fewer-than-claimed"
	MoreThanClaim  Word = "more-than-claimed"
	KnownPartOnly  Word = "known-part-only" // the list of a remote account: ask its home server
	Hidden         Word = "hidden"          // the account hides its lists
	NotTheirs      Word = "not-theirs"      // the server gives the asker's own list, whoever is asked for
	Doubted        Word = "doubted"         // it may be the asker's own list: nothing tells the two apart
	FarEnough      Word = "far-enough"      // Reading.Back
	ShowsNoMore    Word = "shows-no-more"   // the service keeps more than it shows: Reading.Most
)

// Obeys is what a server does with a parameter.
type Obeys string

// What it may do; "" = not known.
const (
	Obeyed  Obeys = "obeyed"
	Ignored Obeys = "ignored"
	// Newest is what some do with Mastodon's min_id: the newest page after that post, as
	// since_id means, and not the next one.
	Newest Obeys = "newest"
)

// Fault is one request that did not bring what was asked for.
type Fault struct {
	Service string // which client: mastodon, bluesky, twitter
	Op      string // lookup, account, statuses, ...
	Word    Word
	Status  int      // 0 = no answer
	Code    string   // the server's own name of the error, where the service has names
	Said    string   // the server's own words, at most 200 bytes
	Names   []string // of what was asked with, as far as the server names it as wrong; capped by the client
	To      string   // of Moved: the Location, as it stands there, at most 1 KiB
	// FromAPI says that the answer was JSON. A 404 that is a page may come
	// from a web server in between, and is a weak reason to call something gone.
	FromAPI bool
	Retry   time.Duration // Retry-After, <0 = none was said
	Err     error         // of Do, when there was no answer
}

// Error says what was asked and what came.
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

// Unwrap is the error of Do.
func (f *Fault) Unwrap() error { return f.Err }

// Again says whether the same question may be answered later: the server is
// limited, down, unreachable, or gave what no API gives.
func (f *Fault) Again() bool {
	switch f.Word {
	case Limited, Down, Unreachable, NotJSON, Misshapen:
		return true
	}
	return false
}

// WordOf is the Word of a Fault, "" for any other error.
func WordOf(err error) Word {
	var f *Fault
	if errors.As(err, &f) {
		return f.Word
	}
	return ""
}

// Again says whether err is a Fault that may pass.
func Again(err error) bool {
	var f *Fault
	return errors.As(err, &f) && f.Again()
}
