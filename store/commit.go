package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Commit makes one fetch durable as one batch (I3): the record, the Key's new
// place in the frontier, the admission of its links into the same slice, the
// outbox rows of the others, the site's pace, the change log. A crash leaves
// all of it or none, and then the Key is still due.
//
// ErrNotExist: the Key was never admitted here, or its slice was dropped during
// the fetch, or it is a file that was withdrawn (file.go); ErrFenced: it was handed over. The new owner has it due.
// Links that cannot be stored are left out (Admission.check); of too large a record links or text are
// left out (Record.Cut).
//
// A foreign link is left out when its Key is in the slice's outbox already, or
// had its final answer lately (Sent) and comes without a Hint. Site.Slice is taken from the Key.
func (s *Store) Commit(c Commit) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	id := s.idIn(c.Slice, c.Key)
	if err := s.checkCommit(id, c); err != nil {
		return fmt.Errorf("store: commit %s: %w", c.Key, err)
	}
	var body []byte
	if c.Record != nil {
		var err error
		if len(c.Record.Media) > 0 {
			r := *c.Record
			r.unhad()
			c.Record = &r
		}
		if body, err = s.packer.encodeRecord(c.Record); err != nil {
			return fmt.Errorf("store: commit %s: %w", c.Key, err)
		}
	}
	kept, err := s.kept(id.slice, &c)
	if err != nil {
		return fmt.Errorf("store: commit %s: %w", c.Key, err)
	}
	err = s.write([]partition.Slice{id.slice}, func(t *txn) error {
		if err := s.fenced(id.slice); err != nil {
			return fmt.Errorf("store: commit %s: %w", c.Key, err)
		}
		if err := t.commit(id, c, body, kept); err != nil {
			return fmt.Errorf("store: commit %s: %w", c.Key, err)
		}
		return nil
	})
	return err
}

func (t *txn) commit(id siteID, c Commit, body []byte, kept *keptBody) error {
	old, err := t.keyState(id, c.Key)
	if errors.Is(err, ErrNotExist) {
		return fmt.Errorf("%w: it was never admitted here, or its slice was handed over", ErrNotExist)
	}
	if err != nil {
		return err
	}
	if old.state == StatePlaced {
		return fmt.Errorf("%w: it was placed in another slice", ErrNotExist)
	}
	if old.withdrawn(c.Key) {
		return fmt.Errorf("%w: it was withdrawn", ErrNotExist)
	}
	if c.Place != nil {
		if err := t.place(id, *c.Place); err != nil {
			return err
		}
	}
	if err := t.markTold(id, &c); err != nil {
		return err
	}
	if old.state == StateQuarantined { // a fetch that was given up, and ended
		return fmt.Errorf("%w: it is left alone: %s", ErrNotExist, old.reason)
	}
	if err := t.put(id, c.Key, &old, old.next(c)); err != nil {
		return err
	}
	if err := t.tried(id, c); err != nil {
		return err
	}
	if err := t.visit(id, c, kept); err != nil {
		return err
	}
	if body != nil {
		if body, err = t.newest(id, c, old, body); err != nil {
			return err
		}
		if err := t.record(id, c.Key, body); err != nil {
			return err
		}
		n, err := t.count(id)
		if err != nil {
			return err
		}
		n.fetches++
	}
	if err := t.social(id, c, old.next(c).fetched); err != nil {
		return err
	}
	if err := t.withdrawals(id, c, old); err != nil {
		return err
	}
	if err := t.links(id, c); err != nil {
		return err
	}
	if c.Site != nil {
		return t.site(id, *c.Site)
	}
	return nil
}

// tick is the least step of stored times.
const tick = time.Microsecond

// newest is c's record as bytes, later than the one there is: every replica
// keeps the later of two, so a clock that was set back must not make the new
// one the earlier. It is then given the time just after the old one's.
func (t *txn) newest(id siteID, c Commit, old keyState, body []byte) ([]byte, error) {
	if c.Record.FetchedAt.After(old.fetched.Add(tick)) {
		return body, nil // next keeps fetched at or above the record's time
	}
	had, err := t.s.get(keyRow(tabRecord, id, c.Key))
	if err != nil {
		return body, ignoreAbsent(err)
	}
	r, err := t.s.packer.decodeRecord(had)
	if err != nil {
		return nil, err
	}
	if (merged{*c.Record, body}).above(merged{r, had}) {
		return body, nil
	}
	now := *c.Record
	now.FetchedAt = r.FetchedAt.Add(tick)
	return t.s.packer.encodeRecord(&now)
}

// next is the state of a Key after c. fetched always grows: by it the replicas
// of the slice tell the newer state, and ReadLog a later one.
func (k keyState) next(c Commit) keyState {
	k.state, k.at, k.attempts = c.Next.State, c.Next.At.UTC(), c.Next.Attempts
	if k.state == StatePending && k.at.IsZero() {
		k.at = c.Now.UTC()
	}
	k.reason = clip(c.Next.Reason, maxReason)
	if c.Next.History != nil {
		k.history = string(c.Next.History)
	}
	last := k.fetched
	k.fetched = c.Now.UTC().Truncate(tick)
	if r := c.Record; r != nil {
		if at := r.FetchedAt.UTC().Truncate(tick); at.After(k.fetched) {
			k.fetched = at
		}
		k.etag, k.modified, k.digest = r.ETag, r.Modified, r.Digest
		if len(k.etag) > maxHeader { // half a validator would validate nothing
			k.etag = ""
		}
		if len(k.modified) > maxHeader {
			k.modified = ""
		}
	}
	if !k.fetched.After(last) {
		k.fetched = last.Add(tick)
	}
	return k
}

// record writes the latest record of k and logs the change.
func (t *txn) record(id siteID, k partition.Key, body []byte) error {
	if err := t.sized(id, k, body); err != nil {
		return err
	}
	row := keyRow(tabRecord, id, k)
	_, c, err := t.s.db.Get(row)
	if err == nil {
		err = c.Close()
	} else if isAbsent(err) {
		n, cerr := t.count(id)
		if cerr != nil {
			return cerr
		}
		n.records++
		err = nil
	}
	if err != nil {
		return err
	}
	if err := t.b.Set(row, body, nil); err != nil {
		return err
	}
	t.name(id.slice, nameRecord, row[9:], len(body), time.Time{})
	if err := t.where(id.slice, k); err != nil {
		return err
	}
	return t.log(k)
}

// links admits those of the same slice and queues the others.
func (t *txn) links(id siteID, c Commit) error {
	fresh := make(map[partition.Key]bool, len(c.Links))
	for _, a := range c.Links {
		if a.Key == c.Key || fresh[a.Key] {
			continue
		}
		a.In, a.Gen, a.Pace = 0, 0, Pace{} // whoever links knows its registrar only
		to := t.s.idOf(a.Key)
		if a.Key.Kind() == partition.KindFile {
			if err := t.admitFile(id, c, a, fresh); err != nil {
				return err
			}
			continue
		}
		if a.check(to.site) != nil {
			continue
		}
		if had, err := t.seenIn(id.slice, a.Key); had || err != nil { // its hint is the crawler's to take up
			if err != nil {
				return err
			}
			continue
		}
		if to.slice == id.slice {
			if _, err := t.admit(to, a, c.Now, fresh); err != nil {
				return err
			}
			continue
		}
		fresh[a.Key] = true
		if a.Hint.Kind == 0 && t.s.answered.has(a.Key.Hash128()) {
			continue
		}
		if err := t.queue(OutboxRow{Slice: id.slice, To: to.slice, Admission: a}); err != nil {
			return err
		}
	}
	return nil
}

// checkCommit finds what Commit cannot store.
func (s *Store) checkCommit(id siteID, c Commit) error {
	if !s.charter.MayHold(id.slice, c.Key) {
		return fmt.Errorf("no key of %s", id.slice)
	}
	if c.Place != nil {
		if err := s.checkPlacement(id, c.Key, *c.Place); err != nil {
			return err
		}
	}
	return c.check(id)
}

func (c Commit) check(id siteID) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if err := checkKey(c.Key, id.site); err != nil {
		errs = append(errs, err)
	}
	if c.Next.State < StatePending || c.Next.State > StateRefused {
		bad("state %d is none of 1 to 4", c.Next.State)
	}
	if c.Next.Attempts < 0 || c.Next.Attempts > maxAttempts {
		bad("attempts %d, 0 to %d", c.Next.Attempts, maxAttempts)
	}
	if len(c.Next.History) > MaxHistory {
		bad("a history of %d bytes, at most %d", len(c.Next.History), MaxHistory)
	}
	if c.Now.IsZero() {
		bad("no time (Now)")
	}
	if r := c.Record; r != nil {
		if r.Key != c.Key {
			bad("the record is of %s", r.Key)
		}
		if r.V != RecordVersion {
			bad("record version %d, this program writes %d", r.V, RecordVersion)
		}
		if len(r.Digest) > maxHeader {
			bad("digest of %d bytes, at most %d", len(r.Digest), maxHeader)
		}
	}
	if err := c.checkSocial(); err != nil {
		errs = append(errs, err)
	}
	if c.Site != nil {
		if c.Site.Site != id.site {
			bad("the site state is of %s, the key of %s", c.Site.Site, id.site)
		} else if err := c.Site.check(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Record is the latest record of k; ErrNotExist when there is none.
func (s *Store) Record(k partition.Key) (Record, error) {
	r, _, err := s.Find(k)
	return r, err
}

// Find is the latest record of k and the slice that it is in: its hash slice,
// or in geo mode the one that it was crawled in.
func (s *Store) Find(k partition.Key) (Record, partition.Slice, error) {
	if err := s.enter(); err != nil {
		return Record{}, 0, err
	}
	defer s.leave()
	id := s.idOf(k)
	v, err := s.get(keyRow(tabRecord, id, k))
	if errors.Is(err, ErrNotExist) {
		if id.slice, err = s.whereIs(k); err == nil {
			v, err = s.get(keyRow(tabRecord, id, k))
		}
	}
	if err != nil {
		return Record{}, 0, fmt.Errorf("store: record of %s: %w", k, err)
	}
	r, err := s.packer.decodeRecord(v)
	if err != nil {
		return Record{}, 0, fmt.Errorf("store: record of %s: %w", k, err)
	}
	if err := s.had(id.slice, &r); err != nil {
		return Record{}, 0, fmt.Errorf("store: record of %s: %w", k, err)
	}
	return r, id.slice, nil
}

// Where is the slice that the record and the posts of k are in, if there are any,
// without reading them.
func (s *Store) Where(k partition.Key) (partition.Slice, error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.leave()
	id := s.idOf(k)
	if s.charter.Mode != partition.ModeGeo {
		return id.slice, nil
	}
	_, c, err := s.db.Get(keyRow(tabRecord, id, k))
	if err == nil {
		return id.slice, c.Close()
	}
	at, err := s.whereIs(k)
	if errors.Is(err, ErrNotExist) {
		return id.slice, nil // posts have no row 'W' there
	}
	if err != nil {
		return 0, fmt.Errorf("store: slice of the record of %s: %w", k, err)
	}
	return at, nil
}

// bucketOf orders the due index: rows of one bucket are read by priority, the
// buckets by time. Wide enough that priority decides among the links of one
// sitting, small enough that none waits for good.
func bucketOf(at time.Time) uint64 {
	sec := max(at.Unix(), 0)
	return uint64(sec - sec%int64(bucket/time.Second))
}

const bucket = time.Hour
