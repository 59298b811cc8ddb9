package store

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/strictjson"
)

// MaxOverrides is how many of one Key are kept, the latest.
const MaxOverrides = 256

// maxOverrideRow is the most that an override has as JSON.
const maxOverrideRow = 6*(4*maxHeader+MaxKeyBytes) + 1<<10

// Override is a person's word on whether an account belongs. All that were ever given
// of an account are kept, beside its record, by every replica; the last one holds.
type Override struct {
	V       int           `json:"v"`
	Key     partition.Key `json:"key"`
	Verdict string        `json:"verdict"` // in, out, undecided, or "" = the judge's again
	By      string        `json:"by"`      // who said so
	Why     string        `json:"why,omitempty"`
	At      time.Time     `json:"at"`
	Peer    string        `json:"peer,omitempty"` // that it was said to
}

// OverrideVersion is the version of the form of an Override (field "v").
const OverrideVersion = 1

// ErrOverride is wrapped by what is wrong with an Override.
var ErrOverride = errors.New("not an override")

// check brings o within the caps, or says what is wrong with it.
func (o *Override) check() error {
	o.By, o.Why, o.Peer = clip(o.By, maxHeader), clip(o.Why, maxHeader), clip(o.Peer, maxHeader)
	o.At = o.At.UTC().Truncate(tick)
	switch {
	case o.V != OverrideVersion:
		return fmt.Errorf("%w: version %d", ErrOverride, o.V)
	case o.Key.Kind() != partition.KindAccount:
		return fmt.Errorf("%w: %.100q is no account", ErrOverride, o.Key)
	case o.By == "" || o.At.IsZero():
		return fmt.Errorf("%w: nobody said it, or never", ErrOverride)
	case !slices.Contains([]string{"", "in", "out", "undecided"}, o.Verdict):
		return fmt.Errorf("%w: verdict %.40q is not in, out, undecided or empty", ErrOverride, o.Verdict)
	}
	return nil
}

// part is the end of the key of o's row: in order of time.
func (o *Override) part() string {
	sum := sha256.Sum256([]byte(o.Verdict + "\x00" + o.By + "\x00" + o.Why))
	return string(append(timePart(o.At), sum[:8]...))
}

func parseOverride(b []byte) (o Override, err error) {
	if err := strictjson.Unmarshal(b, &o); err != nil {
		return o, fmt.Errorf("override: %w: %w", errBadRow, err)
	}
	return o, o.check()
}

func checkOverride(id itemID, b []byte) ([]byte, time.Time, error) {
	o, err := parseOverride(b)
	if err != nil {
		return nil, time.Time{}, err
	}
	if o.Key != id.key || o.part() != id.part {
		return nil, time.Time{}, fmt.Errorf("the override is of %.80q at %s", o.Key, o.At)
	}
	out, err := plainJSON(o)
	return out, o.At, err
}

// joinOverrides: two of one name say the same, but for the peer that heard it.
func joinOverrides(a, b []byte) ([]byte, error) {
	if bytes.Compare(a, b) > 0 {
		return a, nil
	}
	return b, nil
}

// Override makes o durable as the last word on its account in sl (0: its hash
// slice), with what rule makes of its record, and has the account looked at again at once. In rule the
// record may be changed; it is nil when there is none yet. ErrNotExist: the account
// was never admitted here. An o.At that is not after the word before, or is still to
// come, is moved.
func (s *Store) Override(sl partition.Slice, o Override, now time.Time, rule func(*Record, []Override)) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if o.At.IsZero() || o.At.After(now) {
		o.At = now
	}
	if err := o.check(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	id := s.idIn(sl, o.Key)
	return s.write([]partition.Slice{id.slice}, func(t *txn) error {
		if err := t.override(id, o, now, rule); err != nil {
			return fmt.Errorf("store: override %s: %w", o.Key, err)
		}
		return nil
	})
}

func (t *txn) override(id siteID, o Override, now time.Time, rule func(*Record, []Override)) error {
	if err := t.s.fenced(id.slice); err != nil {
		return err
	}
	old, err := t.keyState(id, o.Key)
	if err == nil && old.state == StatePlaced {
		err = fmt.Errorf("%w: it was placed in another slice", ErrNotExist)
	}
	if err != nil {
		return err
	}
	all, err := t.s.overridesOf(id, o.Key)
	if err != nil {
		return err
	}
	if n := len(all); n > 0 && !o.At.After(all[n-1].At) {
		o.At = all[n-1].At.Add(tick)
	}
	state, err := plainJSON(o)
	if err != nil {
		return err
	}
	if err := t.item(itemID{siteID: id, table: tabOverride, key: o.Key, part: o.part()}, state); err != nil {
		return err
	}
	if err := t.trimItems(tabOverride, id, o.Key, MaxOverrides); err != nil {
		return err
	}
	next := old.moved(now)
	if next.state == StateDone || next.state == StatePending {
		next.at = now.UTC()
	}
	had, err := t.s.get(keyRow(tabRecord, id, o.Key))
	if err == nil {
		r, derr := t.s.packer.decodeRecord(had)
		if derr != nil {
			return derr
		}
		rule(&r, append(all, o))
		r.FetchedAt = r.FetchedAt.Add(tick) // every replica keeps the later of two
		if r.FetchedAt.After(next.fetched) {
			next.fetched = r.FetchedAt.UTC().Truncate(tick)
		}
		body, eerr := t.s.packer.encodeRecord(&r)
		if eerr != nil {
			return eerr
		}
		err = t.record(id, o.Key, body)
	}
	if ignoreAbsent(err) != nil {
		return err
	}
	return t.put(id, o.Key, &old, next)
}

// overruleAgain is how soon an account is looked at again of which a person said
// something while it was being fetched.
const overruleAgain = time.Minute

// markTold has a Key due soon that got an Override after what c fetched of it was
// judged: otherwise the word would count from the next visit on, which may be in a month.
func (t *txn) markTold(id siteID, c *Commit) error {
	if c.Record == nil || c.Record.Kind != KindProfile {
		return nil
	}
	all, err := t.s.overridesOf(id, c.Key)
	if err != nil || len(all) == 0 {
		return err
	}
	last := all[len(all)-1]
	v := c.Record.Verdict
	if last.Verdict == "" && (v == nil || v.Override == nil) || v != nil && v.Override != nil &&
		v.Override.At.Equal(last.At) {
		return nil
	}
	if soon := c.Now.Add(overruleAgain); c.Next.State == StateDone && (c.Next.At.IsZero() || c.Next.At.After(soon)) {
		c.Next.At = soon
	}
	return nil
}

// Overrides are what persons said of k in sl (0: its hash slice), in order.
func (s *Store) Overrides(sl partition.Slice, k partition.Key) ([]Override, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	all, err := s.overridesOf(s.idIn(sl, k), k)
	if err != nil {
		return nil, fmt.Errorf("store: overrides: %w", err)
	}
	return all, nil
}

func (s *Store) overridesOf(id siteID, k partition.Key) (all []Override, err error) {
	p := itemKey(tabOverride, id, k)
	err = s.scan(p, after(p), func(key, value []byte) (bool, error) {
		v, err := s.packer.openItem(tabOverride, value)
		if err != nil {
			return false, err
		}
		o, err := parseOverride(v)
		if err != nil {
			return false, fmt.Errorf("row %q: %w", key, err)
		}
		all = append(all, o)
		return true, nil
	})
	slices.SortStableFunc(all,
		func(a, b Override) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.part(), b.part())) })
	return all, err
}
