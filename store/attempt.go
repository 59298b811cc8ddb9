package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// An attempt says that a process is about to judge what it fetched of a Key. It is a row of the slice: durable before
// the page is judged, replicated with the log, handed over, and removed by the Commit of the Key. So whoever owns the
// slice after a death finds the attempts that were under way, and counts them (Trial). Attempts join as items do.

// MaxDeaths is how many deaths of a process a Key may have been under way at before it is left alone. After the first
// it is judged alone for good: a server can send a harmless page to whoever looks for the second time.
const MaxDeaths = 2

const (
	KeptDeaths    = 4 // of one Key, the latest
	MaxRun        = 64
	MaxAttemptRow = 1 << 10 // bytes of an attempt's row, far above what keptDeaths take
)

// Attempt is that a process is about to judge a Key.
type Attempt struct {
	At   time.Time
	Peer string
	Run  string // of the process: another one after each start
}

func (a Attempt) same(b Attempt) bool { return a.Run == b.Run && a.At.Equal(b.At) }

// Trial is what is known of the attempts at a Key.
type Trial struct {
	Open   Attempt   // the latest one that was begun
	Ended  time.Time // attempts begun up to here have ended, and their process lived
	Deaths []Attempt // that were under way when their process died, in order of At
}

// UnderWay says whether an attempt has not ended, as far as is known.
func (t Trial) UnderWay() bool { return t.Open.At.After(t.Ended) }

// Seen is t as the process run has to take it: an attempt under way that is not its own
// died with the process that made it.
func (t Trial) Seen(run string) Trial {
	if t.UnderWay() && t.Open.Run != run {
		t.Deaths = JoinDeaths(t.Deaths, []Attempt{t.Open})
		t.Ended = t.Open.At
	}
	return t
}

// Suspect says of a Trial that was Seen that the Key is to be judged alone.
func (t Trial) Suspect() bool { return len(t.Deaths) > 0 }

// Guilty says of a Trial that was Seen that the Key is to be left alone.
func (t Trial) Guilty() bool { return len(t.Deaths) >= MaxDeaths }

// Reason says why the Key of a Trial is left alone.
func (t Trial) Reason() string {
	if len(t.Deaths) == 0 {
		return "quarantined"
	}
	d := t.Deaths[len(t.Deaths)-1]
	return fmt.Sprintf("quarantined: under way at %d deaths of a process, last at %s, peer %s", len(t.Deaths),
		d.At.UTC().Format(time.RFC3339), d.Peer)
}

func (t Trial) Empty() bool { return !t.UnderWay() && len(t.Deaths) == 0 }

func JoinDeaths(a, b []Attempt) []Attempt {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y Attempt) int {
		return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.Run, y.Run), cmp.Compare(x.Peer, y.Peer))
	})
	all = slices.CompactFunc(all, Attempt.same)
	return all[max(0, len(all)-KeptDeaths):]
}

// Join is the same in any order.
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

// ErrQuarantined is Again's answer for a Key that is left alone.
var ErrQuarantined = errors.New("store: the key is in quarantine: release it")

// ErrNotQuarantined is Release's answer for a Key that is not left alone.
var ErrNotQuarantined = errors.New("store: the key is not in quarantine")
