package db

import (
	"errors"
	"fmt"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/archive"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// Commit makes one fetch durable as one batch (I3). The batch contains the record, the Key's new
// place in the frontier and the site's pace. It admits the links into the same slice, queues outbox
// rows for the other links, and appends to the change log. After a crash, all of it is there, or
// nothing. If nothing is there, the Key is still due.
//
// ErrNotExist means that the Key was never admitted here, or that its slice was dropped during the
// fetch. It also means that the Key was placed in another slice, is in quarantine, or is a
// withdrawn file (file.go). ErrFenced means that the slice was handed over; the Key is due at the
// new owner. Links that cannot be stored are left out (Admission.Check). If a record is too large,
// some of its links or text are left out (Record.Cut).
//
// A link to another slice is left out in two cases: its Key is in the slice's outbox already, or
// its final answer came recently (Sent) and the link has no Hint. Site.Slice is taken from the Key.
func (s *Store) Commit(c store.Commit) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	id := s.engine.IDIn(c.Slice, c.Key)
	if err := s.checkCommit(id, c); err != nil {
		return fmt.Errorf("store: commit %s: %w", c.Key, err)
	}
	var body []byte
	if c.Record != nil {
		var err error
		if len(c.Record.Media) > 0 {
			r := *c.Record
			r.Unhad()
			c.Record = &r
		}
		if body, err = s.engine.Packer.EncodeRecord(c.Record); err != nil {
			return fmt.Errorf("store: commit %s: %w", c.Key, err)
		}
	}
	kept, err := s.Archive.Kept(id.Slice, &c)
	if err != nil {
		return fmt.Errorf("store: commit %s: %w", c.Key, err)
	}
	err = s.write([]partition.Slice{id.Slice}, func(t *batch) error {
		if err := s.engine.Fenced(id.Slice); err != nil {
			return fmt.Errorf("store: commit %s: %w", c.Key, err)
		}
		if err := t.commit(id, c, body, kept); err != nil {
			return fmt.Errorf("store: commit %s: %w", c.Key, err)
		}
		return nil
	})
	return err
}

func (t *batch) commit(id format.SiteID, c store.Commit, body []byte, kept *archive.KeptBody) error {
	old, err := t.KeyState(id, c.Key)
	if errors.Is(err, store.ErrNotExist) {
		return fmt.Errorf("%w: it was never admitted here, or its slice was handed over", store.ErrNotExist)
	}
	if err != nil {
		return err
	}
	if old.State == store.StatePlaced {
		return fmt.Errorf("%w: it was placed in another slice", store.ErrNotExist)
	}
	if old.Withdrawn(c.Key) {
		return fmt.Errorf("%w: it was withdrawn", store.ErrNotExist)
	}
	if c.Place != nil {
		if err := t.Place(id, *c.Place); err != nil {
			return err
		}
	}
	if err := t.markTold(id, &c); err != nil {
		return err
	}
	if old.State == store.StateQuarantined { // the fetch was given up, but ended after all
		return fmt.Errorf("%w: it is left alone: %s", store.ErrNotExist, old.Reason)
	}
	if err := t.Put(id, c.Key, &old, old.Next(c)); err != nil {
		return err
	}
	if err := t.Tried(id, c); err != nil {
		return err
	}
	if err := t.Visit(id, c, kept); err != nil {
		return err
	}
	if body != nil {
		if body, err = t.newest(id, c, old, body); err != nil {
			return err
		}
		if err := t.Record(id, c.Key, body); err != nil {
			return err
		}
		n, err := t.Count(id)
		if err != nil {
			return err
		}
		n.Fetches++
	}
	if err := t.Social(id, c, old.Next(c).Fetched); err != nil {
		return err
	}
	if err := t.withdrawals(id, c, old); err != nil {
		return err
	}
	if err := t.links(id, c); err != nil {
		return err
	}
	if c.Site != nil {
		return t.Site(id, *c.Site)
	}
	return nil
}

// newest returns c's record as bytes, with a time later than the stored record's. Every replica
// keeps the later of two records, so a clock that was set back must not make the new record the
// earlier one. In that case, its time is one Tick after the old one's.
func (t *batch) newest(id format.SiteID, c store.Commit, old format.KeyState, body []byte) ([]byte, error) {
	if c.Record.FetchedAt.After(old.Fetched.Add(store.Tick)) {
		return body, nil // KeyState.Next keeps Fetched at or above the record's time
	}
	had, err := t.s.engine.Get(format.KeyRow(format.TabRecord, id, c.Key))
	if err != nil {
		return body, engine.IgnoreAbsent(err)
	}
	r, err := t.s.engine.Packer.DecodeRecord(had)
	if err != nil {
		return nil, err
	}
	if (archive.Version{Record: *c.Record, Body: body}).Above(archive.Version{Record: r, Body: had}) {
		return body, nil
	}
	now := *c.Record
	now.FetchedAt = r.FetchedAt.Add(store.Tick)
	return t.s.engine.Packer.EncodeRecord(&now)
}

// links admits links into the same slice and queues the others.
func (t *batch) links(id format.SiteID, c store.Commit) error {
	fresh := make(map[partition.Key]bool, len(c.Links))
	for _, a := range c.Links {
		if a.Key == c.Key || fresh[a.Key] {
			continue
		}
		a.In, a.Gen, a.Pace = 0, 0, store.Pace{} // a page knows only the registrar of its links
		to := t.s.engine.IDOf(a.Key)
		if a.Key.Kind() == partition.KindFile {
			if err := t.admitFile(id, c, a, fresh); err != nil {
				return err
			}
			continue
		}
		if a.Check(to.Site) != nil {
			continue
		}
		if had, err := t.SeenIn(id.Slice, a.Key); had || err != nil { // the crawler takes the hint
			if err != nil {
				return err
			}
			continue
		}
		if to.Slice == id.Slice {
			if _, err := t.Admit(to, a, c.Now, fresh); err != nil {
				return err
			}
			continue
		}
		fresh[a.Key] = true
		if a.Hint.Kind == 0 && t.s.Queue.Answered.Has(a.Key.Hash128()) {
			continue
		}
		if err := t.Queue(store.OutboxRow{Slice: id.Slice, To: to.Slice, Admission: a}); err != nil {
			return err
		}
	}
	return nil
}

// checkCommit returns an error for a commit that cannot be stored.
func (s *Store) checkCommit(id format.SiteID, c store.Commit) error {
	if !s.engine.Charter().MayHold(id.Slice, c.Key) {
		return fmt.Errorf("no key of %s", id.Slice)
	}
	if c.Place != nil {
		if err := s.Queue.CheckPlacement(id, c.Key, *c.Place); err != nil {
			return err
		}
	}
	return c.Check(id.Site)
}
