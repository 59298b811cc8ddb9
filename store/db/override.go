package db

import (
	"fmt"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// Override makes o durable as the newest override of its account in sl (0: its hash slice). In the
// same batch, it writes the account's record as rule changes it, and makes the account due at once.
// rule is not called when there is no record yet. ErrNotExist means that the account was never
// admitted here. Override moves o.At when it is in the future or not after the previous override.
func (s *Store) Override(sl partition.Slice, o store.Override, now time.Time, rule func(*store.Record,
	[]store.Override)) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	if o.At.IsZero() || o.At.After(now) {
		o.At = now
	}
	if err := o.Check(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	id := s.engine.IDIn(sl, o.Key)
	return s.write([]partition.Slice{id.Slice}, func(t *batch) error {
		if err := t.override(id, o, now, rule); err != nil {
			return fmt.Errorf("store: override %s: %w", o.Key, err)
		}
		return nil
	})
}

func (t *batch) override(id format.SiteID, o store.Override, now time.Time, rule func(*store.Record,
	[]store.Override)) error {
	if err := t.s.engine.Fenced(id.Slice); err != nil {
		return err
	}
	old, err := t.KeyState(id, o.Key)
	if err == nil && old.State == store.StatePlaced {
		err = fmt.Errorf("%w: it was placed in another slice", store.ErrNotExist)
	}
	if err != nil {
		return err
	}
	all, err := t.s.Accounts.OverridesOf(id, o.Key)
	if err != nil {
		return err
	}
	if n := len(all); n > 0 && !o.At.After(all[n-1].At) {
		o.At = all[n-1].At.Add(store.Tick)
	}
	state, err := store.PlainJSON(o)
	if err != nil {
		return err
	}
	if err := t.Item(format.ItemID{SiteID: id, Table: format.TabOverride, Key: o.Key, Part: o.Part()},
		state); err != nil {
		return err
	}
	if err := t.TrimItems(format.TabOverride, id, o.Key, store.MaxOverrides); err != nil {
		return err
	}
	next := old.Moved(now)
	if next.State == store.StateDone || next.State == store.StatePending {
		next.At = now.UTC()
	}
	had, err := t.s.engine.Get(format.KeyRow(format.TabRecord, id, o.Key))
	if err == nil {
		r, derr := t.s.engine.Packer.DecodeRecord(had)
		if derr != nil {
			return derr
		}
		rule(&r, append(all, o))
		r.FetchedAt = r.FetchedAt.Add(store.Tick) // every replica keeps the later of two
		if r.FetchedAt.After(next.Fetched) {
			next.Fetched = r.FetchedAt.UTC().Truncate(store.Tick)
		}
		body, eerr := t.s.engine.Packer.EncodeRecord(&r)
		if eerr != nil {
			return eerr
		}
		err = t.Record(id, o.Key, body)
	}
	if engine.IgnoreAbsent(err) != nil {
		return err
	}
	return t.Put(id, o.Key, &old, next)
}

// overruleAgain is the longest time until the next visit of an account that got an override during
// a fetch.
const overruleAgain = time.Minute

// markTold makes a Key due soon if it got an Override after the fetch of c was judged. Otherwise
// the override would count only from the next visit, which may be in a month.
func (t *batch) markTold(id format.SiteID, c *store.Commit) error {
	if c.Record == nil || c.Record.Kind != store.KindProfile {
		return nil
	}
	all, err := t.s.Accounts.OverridesOf(id, c.Key)
	if err != nil || len(all) == 0 {
		return err
	}
	last := all[len(all)-1]
	v := c.Record.Verdict
	if last.Verdict == "" && (v == nil || v.Override == nil) || v != nil && v.Override != nil &&
		v.Override.At.Equal(last.At) {
		return nil
	}
	if soon := c.Now.Add(overruleAgain); c.Next.State == store.StateDone && (c.Next.At.IsZero() ||
		c.Next.At.After(soon)) {
		c.Next.At = soon
	}
	return nil
}
