package queue

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// Trial returns what is known about the attempts at k in sl (0: its hash slice). The Trial is zero
// when nothing is known.
func (s *Queue) Trial(sl partition.Slice, k partition.Key) (store.Trial, error) {
	if err := s.engine.Enter(); err != nil {
		return store.Trial{}, err
	}
	defer s.engine.Leave()
	v, err := s.engine.Get(format.TrialID(s.engine.IDIn(sl, k), k).Row())
	if errors.Is(err, store.ErrNotExist) {
		return store.Trial{}, nil
	}
	var t store.Trial
	if err == nil {
		t, err = format.DecodeTrial(v)
	}
	if err == nil && t.UnderWay() {
		err = s.endedByState(sl, k, &t)
	}
	if err != nil {
		return store.Trial{}, fmt.Errorf("store: attempts at %s: %w", k, err)
	}
	return t, nil
}

// endedByState ends an attempt that began before the last fetch of its Key. The end of that attempt
// was in a part of the log that this store never received, for example because the log was cut.
func (s *Queue) endedByState(sl partition.Slice, k partition.Key, t *store.Trial) error {
	v, err := s.engine.Get(format.KeyRow(format.TabKey, s.engine.IDIn(sl, k), k))
	if err != nil {
		return engine.IgnoreAbsent(err)
	}
	st, err := format.DecodeKeyState(v)
	if err == nil && !t.Open.At.After(st.Fetched) {
		t.Ended = t.Open.At
	}
	return err
}

// Try makes durable that attempt a at k in sl is about to begin. It moves a.At behind all earlier
// attempts and fetches. It returns ErrNotExist and ErrFenced as Commit does.
func (s *Queue) Try(sl partition.Slice, k partition.Key, a store.Attempt) error {
	a.Peer, a.Run = store.Clip(a.Peer, store.MaxHeader), store.Clip(a.Run, store.MaxRun)
	return s.onTrial("attempt", sl, k, func(t *Batch, id format.SiteID, was store.Trial) error {
		st, err := t.KeyState(id, k)
		if err != nil {
			return err
		}
		was = was.Seen(a.Run)
		a.At = a.At.UTC().Truncate(store.Tick)
		for _, before := range []time.Time{was.Open.At, was.Ended, st.Fetched} {
			if !a.At.After(before) {
				a.At = before.Add(store.Tick)
			}
		}
		was.Open = a
		return t.Item(format.TrialID(id, k), format.EncodeTrial(was))
	})
}

// Untry records that the attempt of run at k ended and that the process is alive. It is for
// attempts that end without a Commit.
func (s *Queue) Untry(sl partition.Slice, k partition.Key, run string) error {
	return s.onTrial("end of an attempt", sl, k, func(t *Batch, id format.SiteID, was store.Trial) error {
		if !was.UnderWay() || was.Open.Run != run {
			return nil
		}
		return t.trialEnded(id, k, was)
	})
}

// Quarantine takes k out of the frontier until Release. Its reason becomes that of its Trial.
func (s *Queue) Quarantine(sl partition.Slice, k partition.Key, run string, now time.Time) error {
	return s.onTrial("quarantine", sl, k, func(t *Batch, id format.SiteID, was store.Trial) error {
		old, err := t.KeyState(id, k)
		if err != nil || old.State == store.StatePlaced || old.State == store.StateQuarantined {
			return err
		}
		was = was.Seen(run)
		if err := t.Item(format.TrialID(id, k), format.EncodeTrial(was)); err != nil {
			return err
		}
		next := old.Moved(now)
		next.State, next.At, next.Reason = store.StateQuarantined, time.Time{}, store.Clip(was.Reason(),
			store.MaxReason)
		return t.Put(id, k, &old, next)
	})
}

// Release makes k due now, because a person asked for it. Earlier deaths no longer count. It
// returns ErrNotQuarantined when k is not in quarantine.
func (s *Queue) Release(sl partition.Slice, k partition.Key, now time.Time) error {
	return s.onTrial("release", sl, k, func(t *Batch, id format.SiteID, was store.Trial) error {
		old, err := t.KeyState(id, k)
		if err != nil {
			return err
		}
		if old.State != store.StateQuarantined {
			return store.ErrNotQuarantined
		}
		if err := t.trialEnded(id, k, store.Trial{}); err != nil {
			return err
		}
		next := old.Moved(now)
		next.State, next.At, next.Attempts, next.Reason = store.StatePending, now.UTC(), 0, ""
		return t.Put(id, k, &old, next)
	})
}

// Again makes k due now, whatever was planned, because a person asked for it. A Key in quarantine
// stays there until Release (ErrQuarantined).
func (s *Queue) Again(sl partition.Slice, k partition.Key, now time.Time) error {
	return s.onTrial("again", sl, k, func(t *Batch, id format.SiteID, _ store.Trial) error {
		old, err := t.KeyState(id, k)
		if err != nil {
			return err
		}
		if old.State == store.StatePlaced {
			return store.ErrNotExist
		}
		if old.State == store.StateQuarantined {
			return store.ErrQuarantined
		}
		if !old.At.IsZero() && !old.At.After(now) {
			return nil // it is due already
		}
		next := old.Moved(now)
		next.At, next.Attempts = now.UTC(), 0
		if old.State != store.StateDone {
			next.State, next.Reason = store.StatePending, ""
		}
		return t.Put(id, k, &old, next)
	})
}

// onTrial runs do as one batch about the attempts at one Key.
func (s *Queue) onTrial(what string, sl partition.Slice, k partition.Key,
	do func(t *Batch, id format.SiteID, was store.Trial) error) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	id := s.engine.IDIn(sl, k)
	err := store.CheckKey(k, id.Site)
	if err == nil {
		err = s.write([]partition.Slice{id.Slice}, func(t *Batch) error {
			if err := s.engine.Fenced(id.Slice); err != nil {
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

// trial returns the attempts at k as this batch leaves them so far.
func (t *Batch) trial(id format.SiteID, k partition.Key) (was store.Trial, found bool, err error) {
	v, err := t.State(format.TrialID(id, k))
	if err != nil || v == nil {
		return store.Trial{}, false, err
	}
	was, err = format.DecodeTrial(v)
	return was, true, err
}

// trialEnded writes that no attempt at k is in progress. When no process died at k, it deletes the
// row.
func (t *Batch) trialEnded(id format.SiteID, k partition.Key, now store.Trial) error {
	if now.UnderWay() {
		now.Ended = now.Open.At
	}
	if !now.Empty() {
		return t.Item(format.TrialID(id, k), format.EncodeTrial(now))
	}
	row := format.TrialID(id, k).Row()
	t.Name(id.Slice, byte(format.TabAttempt), row[9:], 0, time.Time{})
	return t.TrialGone(row)
}

// Tried does the part of a Commit that concerns attempts: the attempt has ended and the process is
// alive.
func (t *Batch) Tried(id format.SiteID, c store.Commit) error {
	was, found, err := t.trial(id, c.Key)
	if err != nil || !found {
		return err
	}
	return t.trialEnded(id, c.Key, was.Seen(c.Run))
}

// Quarantined calls fn for each Key of sl in quarantine, in order, until fn returns false.
func (s *Queue) Quarantined(sl partition.Slice, fn func(k partition.Key, reason string) (bool, error)) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	p := format.SlicePrefix(format.TabAttempt, sl)
	err := s.engine.Scan(p, format.After(p), func(key, _ []byte) (bool, error) {
		id, err := format.SplitItem(format.TabAttempt, key)
		if err != nil {
			return false, err
		}
		v, err := s.engine.Get(format.KeyRow(format.TabKey, id.SiteID, id.Key))
		if err != nil {
			return true, engine.IgnoreAbsent(err)
		}
		st, err := format.DecodeKeyState(v)
		if err != nil || st.State != store.StateQuarantined {
			return true, err
		}
		return fn(partition.Key(bytes.Clone([]byte(id.Key))), st.Reason)
	})
	if err != nil {
		return fmt.Errorf("store: quarantine of %s: %w", sl, err)
	}
	return nil
}
