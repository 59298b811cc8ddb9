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
// ErrNotExist: the Key was never admitted here, or its slice was handed over
// (DropSlice) during the fetch; the new owner has it due. Links that cannot be
// stored are left out (Admission.check); a record that cannot be is an error.
//
// A foreign link is left out when its Key is in the slice's outbox already, or
// had its final answer lately (Sent). Site.Slice is taken from the Key.
func (s *Store) Commit(c Commit) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	id := s.idOf(c.Key)
	if err := c.check(id); err != nil {
		return fmt.Errorf("store: commit %s: %w", c.Key, err)
	}
	var body []byte
	if c.Record != nil {
		var err error
		if body, err = s.packer.encodeRecord(c.Record); err != nil {
			return fmt.Errorf("store: commit %s: %w", c.Key, err)
		}
	}
	err := s.write([]partition.Slice{id.slice}, func(t *txn) error {
		if err := t.commit(id, c, body); err != nil {
			return fmt.Errorf("store: commit %s: %w", c.Key, err)
		}
		return nil
	})
	return err
}

func (t *txn) commit(id siteID, c Commit, body []byte) error {
	old, err := t.keyState(id, c.Key)
	if errors.Is(err, ErrNotExist) {
		return fmt.Errorf("%w: it was never admitted here, or its slice was handed over", ErrNotExist)
	}
	if err != nil {
		return err
	}
	if err := t.put(id, c.Key, &old, old.next(c)); err != nil {
		return err
	}
	if body != nil {
		if err := t.record(id, c.Key, body); err != nil {
			return err
		}
		n, err := t.count(id)
		if err != nil {
			return err
		}
		n.fetches++
	}
	if err := t.links(id, c); err != nil {
		return err
	}
	if c.Site != nil {
		return t.site(id, *c.Site)
	}
	return nil
}

// next is the state of a Key after c.
func (k keyState) next(c Commit) keyState {
	k.state, k.at, k.attempts = c.Next.State, c.Next.At.UTC(), c.Next.Attempts
	if k.state == StatePending && k.at.IsZero() {
		k.at = c.Now.UTC()
	}
	k.reason = clip(c.Next.Reason, maxReason)
	k.fetched = c.Now.UTC()
	if r := c.Record; r != nil {
		k.etag, k.modified, k.digest = r.ETag, r.Modified, r.Digest
		if len(k.etag) > maxHeader { // half a validator would validate nothing
			k.etag = ""
		}
		if len(k.modified) > maxHeader {
			k.modified = ""
		}
	}
	return k
}

// record writes the latest record of k and logs the change.
func (t *txn) record(id siteID, k partition.Key, body []byte) error {
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
	return t.log(k)
}

// links admits those of the same slice and queues the others.
func (t *txn) links(id siteID, c Commit) error {
	fresh := make(map[partition.Key]bool, len(c.Links))
	for _, a := range c.Links {
		if a.Key == c.Key || fresh[a.Key] {
			continue
		}
		to := t.s.idOf(a.Key)
		if a.check(to.site) != nil {
			continue
		}
		if to.slice == id.slice {
			if _, err := t.admit(to, a, c.Now, fresh); err != nil {
				return err
			}
			continue
		}
		fresh[a.Key] = true
		if t.s.answered.has(a.Key.Hash128()) {
			continue
		}
		if err := t.queue(OutboxRow{Slice: id.slice, To: to.slice, Admission: a}); err != nil {
			return err
		}
	}
	return nil
}

// check finds what Commit cannot store.
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
	if err := s.enter(); err != nil {
		return Record{}, err
	}
	defer s.leave()
	v, err := s.get(keyRow(tabRecord, s.idOf(k), k))
	if err != nil {
		return Record{}, fmt.Errorf("store: record of %s: %w", k, err)
	}
	r, err := s.packer.decodeRecord(v)
	if err != nil {
		return Record{}, fmt.Errorf("store: record of %s: %w", k, err)
	}
	return r, nil
}

// bucketOf orders the due index: rows of one bucket are read by priority, the
// buckets by time. Wide enough that priority decides among the links of one
// sitting, small enough that none waits for good.
func bucketOf(at time.Time) uint64 {
	sec := max(at.Unix(), 0)
	return uint64(sec - sec%int64(bucket/time.Second))
}

const bucket = time.Hour
