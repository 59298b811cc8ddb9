package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// An attempt says that a process is about to judge what it fetched of a Key. It is a row of the slice: durable before
// the page is judged, replicated with the log, handed over, and removed by the Commit of the Key. So whoever owns the
// slice after a death finds the attempts that were under way, and counts them (Trial). Attempts join as items do.

// MaxDeaths is how many deaths of a process a Key may have been under way at before it is left alone. After the first
// it is judged alone for good: a server can send a harmless page to whoever looks for the second time.
const MaxDeaths = 2

const (
	keptDeaths = 4 // of one Key, the latest
	maxRun     = 64
	maxAttempt = 1 << 10 // bytes of an attempt's row, far above what keptDeaths take
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

// underWay says whether an attempt has not ended, as far as is known.
func (t Trial) underWay() bool { return t.Open.At.After(t.Ended) }

// Seen is t as the process run has to take it: an attempt under way that is not its own
// died with the process that made it.
func (t Trial) Seen(run string) Trial {
	if t.underWay() && t.Open.Run != run {
		t.Deaths = joinDeaths(t.Deaths, []Attempt{t.Open})
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

func (t Trial) empty() bool { return !t.underWay() && len(t.Deaths) == 0 }

func joinDeaths(a, b []Attempt) []Attempt {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y Attempt) int {
		return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.Run, y.Run), cmp.Compare(x.Peer, y.Peer))
	})
	all = slices.CompactFunc(all, Attempt.same)
	return all[max(0, len(all)-keptDeaths):]
}

// join is the same in any order.
func (t Trial) join(o Trial) Trial {
	if c := cmp.Or(t.Open.At.Compare(o.Open.At), cmp.Compare(t.Open.Run, o.Open.Run)); c < 0 {
		t.Open = o.Open
	}
	if o.Ended.After(t.Ended) {
		t.Ended = o.Ended
	}
	t.Deaths = joinDeaths(t.Deaths, o.Deaths)
	return t
}

func (e *encoder) attempt(a Attempt) {
	e.time(a.At)
	e.text(a.Peer)
	e.text(a.Run)
}

func (d *decoder) attempt() Attempt {
	return Attempt{At: d.time(), Peer: d.text(maxHeader), Run: d.text(maxRun)}
}

func (t Trial) encode() []byte {
	e := encoder{b: make([]byte, 0, 128)}
	e.byte(rowVersion)
	e.attempt(t.Open)
	e.time(t.Ended)
	e.uint(uint64(len(t.Deaths)))
	for _, a := range t.Deaths {
		e.attempt(a)
	}
	return e.b
}

func decodeTrial(b []byte) (Trial, error) {
	d := newDecoder(b)
	t := Trial{Open: d.attempt(), Ended: d.time()}
	for range d.uint(keptDeaths) {
		t.Deaths = append(t.Deaths, d.attempt())
	}
	return t, d.end("attempt")
}

func checkTrial(id itemID, b []byte) (canonical []byte, at time.Time, err error) {
	t, err := decodeTrial(b)
	if err == nil && (id.part != "" || len(b) > maxAttempt || t.Open.At.IsZero() && len(t.Deaths) == 0) {
		err = errBadRow
	}
	if err != nil {
		return nil, at, err
	}
	t.Deaths = joinDeaths(t.Deaths, nil)
	for _, x := range append([]Attempt{t.Open, {At: t.Ended}}, t.Deaths...) {
		if x.At.After(at) {
			at = x.At
		}
	}
	return t.encode(), at, nil
}

func joinTrials(a, b []byte) ([]byte, error) {
	x, err := decodeTrial(a)
	if err != nil {
		return nil, err
	}
	y, err := decodeTrial(b)
	if err != nil {
		return nil, err
	}
	return x.join(y).encode(), nil
}

func trialID(id siteID, k partition.Key) itemID {
	return itemID{siteID: id, table: tabAttempt, key: k}
}

// Trial is what is known of the attempts at k in sl (0: its hash slice); the zero Trial when that is nothing.
func (s *Store) Trial(sl partition.Slice, k partition.Key) (Trial, error) {
	if err := s.enter(); err != nil {
		return Trial{}, err
	}
	defer s.leave()
	v, err := s.get(trialID(s.idIn(sl, k), k).row())
	if errors.Is(err, ErrNotExist) {
		return Trial{}, nil
	}
	var t Trial
	if err == nil {
		t, err = decodeTrial(v)
	}
	if err == nil && t.underWay() {
		err = s.endedByState(sl, k, &t)
	}
	if err != nil {
		return Trial{}, fmt.Errorf("store: attempts at %s: %w", k, err)
	}
	return t, nil
}

// endedByState ends an attempt that began before its Key was fetched last: its end was in a part of the log
// that this store never got, as after a cut.
func (s *Store) endedByState(sl partition.Slice, k partition.Key, t *Trial) error {
	v, err := s.get(keyRow(tabKey, s.idIn(sl, k), k))
	if err != nil {
		return ignoreAbsent(err)
	}
	st, err := decodeKeyState(v)
	if err == nil && !t.Open.At.After(st.fetched) {
		t.Ended = t.Open.At
	}
	return err
}

// Try makes durable that a is about to be made at k in sl; a.At is moved behind all attempts and fetches before.
// ErrNotExist and ErrFenced are as in Commit.
func (s *Store) Try(sl partition.Slice, k partition.Key, a Attempt) error {
	a.Peer, a.Run = clip(a.Peer, maxHeader), clip(a.Run, maxRun)
	return s.onTrial("attempt", sl, k, func(t *txn, id siteID, was Trial) error {
		st, err := t.keyState(id, k)
		if err != nil {
			return err
		}
		was = was.Seen(a.Run)
		a.At = a.At.UTC().Truncate(tick)
		for _, before := range []time.Time{was.Open.At, was.Ended, st.fetched} {
			if !a.At.After(before) {
				a.At = before.Add(tick)
			}
		}
		was.Open = a
		return t.item(trialID(id, k), was.encode())
	})
}

// Untry says that the attempt of run at k ended, and that the process lives, where no Commit says so.
func (s *Store) Untry(sl partition.Slice, k partition.Key, run string) error {
	return s.onTrial("end of an attempt", sl, k, func(t *txn, id siteID, was Trial) error {
		if !was.underWay() || was.Open.Run != run {
			return nil
		}
		return t.trialEnded(id, k, was)
	})
}

// Quarantine has k left alone until Release: it is due no more, and its reason is that of its Trial.
func (s *Store) Quarantine(sl partition.Slice, k partition.Key, run string, now time.Time) error {
	return s.onTrial("quarantine", sl, k, func(t *txn, id siteID, was Trial) error {
		old, err := t.keyState(id, k)
		if err != nil || old.state == StatePlaced || old.state == StateQuarantined {
			return err
		}
		was = was.Seen(run)
		if err := t.item(trialID(id, k), was.encode()); err != nil {
			return err
		}
		next := old.moved(now)
		next.state, next.at, next.reason = StateQuarantined, time.Time{}, clip(was.Reason(), maxReason)
		return t.put(id, k, &old, next)
	})
}

// Release has k looked at again, now: a person says so. The deaths before count no more. ErrNotQuarantined: it is not
// left alone.
func (s *Store) Release(sl partition.Slice, k partition.Key, now time.Time) error {
	return s.onTrial("release", sl, k, func(t *txn, id siteID, was Trial) error {
		old, err := t.keyState(id, k)
		if err != nil {
			return err
		}
		if old.state != StateQuarantined {
			return ErrNotQuarantined
		}
		if err := t.trialEnded(id, k, Trial{}); err != nil {
			return err
		}
		next := old.moved(now)
		next.state, next.at, next.attempts, next.reason = StatePending, now.UTC(), 0, ""
		return t.put(id, k, &old, next)
	})
}

// Again has k looked at now, whatever was planned: a person says so. Who is left alone stays so until Release.
func (s *Store) Again(sl partition.Slice, k partition.Key, now time.Time) error {
	return s.onTrial("again", sl, k, func(t *txn, id siteID, _ Trial) error {
		old, err := t.keyState(id, k)
		if err != nil {
			return err
		}
		if old.state == StatePlaced {
			return ErrNotExist
		}
		if old.state == StateQuarantined {
			return ErrQuarantined
		}
		if !old.at.IsZero() && !old.at.After(now) {
			return nil // it is due
		}
		next := old.moved(now)
		next.at, next.attempts = now.UTC(), 0
		if old.state != StateDone {
			next.state, next.reason = StatePending, ""
		}
		return t.put(id, k, &old, next)
	})
}

// ErrQuarantined is Again's answer for a Key that is left alone.
var ErrQuarantined = errors.New("store: the key is in quarantine: release it")

// ErrNotQuarantined is Release's answer for a Key that is not left alone.
var ErrNotQuarantined = errors.New("store: the key is not in quarantine")

// onTrial is a write about the attempts at one Key.
func (s *Store) onTrial(what string, sl partition.Slice, k partition.Key,
	do func(t *txn, id siteID, was Trial) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	id := s.idIn(sl, k)
	err := checkKey(k, id.site)
	if err == nil {
		err = s.write([]partition.Slice{id.slice}, func(t *txn) error {
			if err := s.fenced(id.slice); err != nil {
				return err
			}
			was, _, err := t.trial(id, k)
			if err != nil {
				return err
			}
			return do(t, id, was)
		})
	}
	if err != nil {
		return fmt.Errorf("store: %s %s: %w", what, k, err)
	}
	return nil
}

// trial is what this batch leaves of the attempts at k so far.
func (t *txn) trial(id siteID, k partition.Key) (was Trial, found bool, err error) {
	v, err := t.state(trialID(id, k))
	if err != nil || v == nil {
		return Trial{}, false, err
	}
	was, err = decodeTrial(v)
	return was, true, err
}

// trialEnded writes that no attempt at k is under way. Of a Key that no process died at nothing is left.
func (t *txn) trialEnded(id siteID, k partition.Key, now Trial) error {
	if now.underWay() {
		now.Ended = now.Open.At
	}
	if !now.empty() {
		return t.item(trialID(id, k), now.encode())
	}
	row := trialID(id, k).row()
	t.name(id.slice, byte(tabAttempt), row[9:], 0, time.Time{})
	return t.trialGone(row)
}

// trialGone removes a row, for what this batch writes after that, too.
func (t *txn) trialGone(row []byte) error {
	if t.items == nil {
		t.items = map[string][]byte{}
	}
	t.items[string(row)] = nil
	return t.b.Delete(row, nil)
}

// tried is the part of a Commit: the attempt has ended, and the process lives.
func (t *txn) tried(id siteID, c Commit) error {
	was, found, err := t.trial(id, c.Key)
	if err != nil || !found {
		return err
	}
	return t.trialEnded(id, c.Key, was.Seen(c.Run))
}

// staleTrial says of attempts that do not come by the log of the slice's owner whether they were over before the
// Key was fetched last: nobody tells that again.
func (m *merger) staleTrial(i incoming) (bool, error) {
	t, err := decodeTrial(i.body)
	if err != nil || len(t.Deaths) > 0 {
		return false, err
	}
	st, err := m.stateOf(i.id, i.key)
	if err != nil || st == nil {
		return false, err
	}
	return !t.Open.At.After(st.fetched), nil
}

// Quarantined calls fn for the Keys of sl that are left alone, in order after from, until it answers false.
func (s *Store) Quarantined(sl partition.Slice, fn func(k partition.Key, reason string) (bool, error)) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	p := slicePrefix(tabAttempt, sl)
	err := s.scan(p, after(p), func(key, _ []byte) (bool, error) {
		id, err := splitItem(tabAttempt, key)
		if err != nil {
			return false, err
		}
		v, err := s.get(keyRow(tabKey, id.siteID, id.key))
		if err != nil {
			return true, ignoreAbsent(err)
		}
		st, err := decodeKeyState(v)
		if err != nil || st.state != StateQuarantined {
			return true, err
		}
		return fn(partition.Key(bytes.Clone([]byte(id.key))), st.reason)
	})
	if err != nil {
		return fmt.Errorf("store: quarantine of %s: %w", sl, err)
	}
	return nil
}
