package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// An attempt means that a process is about to judge what it fetched for a Key. It is a row of the
// slice. It is durable before the page is judged. It is replicated with the log and handed over,
// and the Commit of the Key removes it if no process died at the Key. So after a death, the owner
// of the slice finds the attempts that were under way and counts them (Trial). Attempts join as
// items do.

// MaxDeaths is how many processes may die while they judge a Key before the Key is quarantined.
// After the first death, the Key is always judged alone: a server can send a harmless page to the
// second request.
const MaxDeaths = 2

const (
	KeptDeaths    = 4 // maximum kept of one Key, the latest
	MaxRun        = 64
	MaxAttemptRow = 1 << 10 // bytes of an attempt's row, far more than KeptDeaths need
)

// Attempt says that a process is about to judge a Key.
type Attempt struct {
	At   time.Time
	Peer string
	Run  string // identifies the process; new at each start
}

func (a Attempt) same(b Attempt) bool { return a.Run == b.Run && a.At.Equal(b.At) }

// Trial is the known history of the attempts at a Key.
type Trial struct {
	Open   Attempt   // the latest attempt that was started
	Ended  time.Time // attempts started up to here have ended, and their process survived
	Deaths []Attempt // attempts whose process died during them, in order of At
}

// UnderWay reports whether, as far as is known, an attempt has not ended.
func (t Trial) UnderWay() bool { return t.Open.At.After(t.Ended) }

// Seen returns t as the process run must treat it. An attempt under way that belongs to another
// process counts as a death of that process.
func (t Trial) Seen(run string) Trial {
	if t.UnderWay() && t.Open.Run != run {
		t.Deaths = JoinDeaths(t.Deaths, []Attempt{t.Open})
		t.Ended = t.Open.At
	}
	return t
}

// Suspect reports whether the Key must be judged alone. t must come from Seen.
func (t Trial) Suspect() bool { return len(t.Deaths) > 0 }

// Guilty reports whether the Key must be quarantined. t must come from Seen.
func (t Trial) Guilty() bool { return len(t.Deaths) >= MaxDeaths }

// Reason explains why the Key is quarantined.
func (t Trial) Reason() string {
	if len(t.Deaths) == 0 {
		return "quarantined"
	}
	d := t.Deaths[len(t.Deaths)-1]
	return fmt.Sprintf("quarantined: under way at %d deaths of a process, last at %s, peer %s", len(t.Deaths),
		d.At.UTC().Format(time.RFC3339), d.Peer)
}

// Empty reports whether t needs no row: no attempt is under way, and no process died.
func (t Trial) Empty() bool { return !t.UnderWay() && len(t.Deaths) == 0 }

// JoinDeaths merges two lists of deaths, and keeps the latest KeptDeaths.
func JoinDeaths(a, b []Attempt) []Attempt {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y Attempt) int {
		return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.Run, y.Run), cmp.Compare(x.Peer, y.Peer))
	})
	all = slices.CompactFunc(all, Attempt.same)
	return all[max(0, len(all)-KeptDeaths):]
}

// Join merges two Trials. The result does not depend on the order.
func (t Trial) Join(o Trial) Trial {
	if c := cmp.Or(t.Open.At.Compare(o.Open.At), cmp.Compare(t.Open.Run, o.Open.Run)); c < 0 {
		t.Open = o.Open
	}
	if o.Ended.After(t.Ended) {
		t.Ended = o.Ended
	}
	t.Deaths = JoinDeaths(t.Deaths, o.Deaths)
	return t
}

// ErrQuarantined is returned by Queue.Again for a quarantined Key.
var ErrQuarantined = errors.New("store: the key is in quarantine: release it")

// ErrNotQuarantined is returned by Queue.Release for a Key that is not quarantined.
var ErrNotQuarantined = errors.New("store: the key is not in quarantine")
