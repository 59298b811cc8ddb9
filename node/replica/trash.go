package replica

import (
	"context"
	"errors"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/trash"
)

// trashEvery is how often old copies are removed from the trash.
const trashEvery = 10 * time.Second

// Why a copy is in the trash.
const (
	whySurplus    = "surplus"
	whyReconciled = "united"
)

// keepTrash puts the whole copy of s into the trash before it is dropped. It returns false if that
// failed and the copy must stay for now. If the trash is full, it returns true.
func (t *Tidier) keepTrash(s partition.Slice, why string) bool {
	err := t.o.Trash.Put(t.o.Store.Log, s, why, time.Now())
	switch {
	case errors.Is(err, trash.ErrFull):
		t.o.Counts.TrashFull.Add(1)
		t.o.Logger.Debug("a copy is dropped that the trash has no room for", "slice", s, "err", err)
	case err != nil:
		t.o.Logger.Warn("a copy cannot be put into the trash and is not dropped", "slice", s, "err", err)
		return false
	}
	return true
}

// tidyTrash removes copies that are too old and gives back the copies that a person wants back.
func (t *Tidier) tidyTrash(ctx context.Context, now time.Time) error {
	if now.Sub(t.trashTidied) >= trashEvery {
		t.trashTidied = now
		if err := t.o.Trash.Tidy(now); err != nil {
			t.o.Logger.Warn("trash", "err", err)
			return nil
		}
	}
	for _, x := range t.o.Trash.List() {
		if !x.Wanted {
			continue
		}
		given, err := t.giveBack(ctx, x)
		if err != nil {
			return err
		}
		if !given {
			continue
		}
		t.o.Logger.Info("a dropped copy is given back", "slice", x.Slice, "dropped", x.At)
		if err := t.o.Trash.Remove(x); err != nil {
			t.o.Logger.Warn("trash", "err", err)
		}
	}
	return nil
}

// giveBack merges the rows of x into the copy of the slice's present owner. If this peer is the
// owner, it trusts its own old copy. It returns false if that is not possible now. Sending the rows
// twice changes nothing, so a crash in the middle loses nothing. The error comes from the store.
func (t *Tidier) giveBack(ctx context.Context, x trash.Trashed) (bool, error) {
	owner := t.o.Quorum.Owner(x.Slice)
	if owner != t.o.Self && !t.o.Placement.Alive(owner) || owner == t.o.Self && !t.agreement.Acts(x.Slice) {
		return false, nil
	}
	err := t.o.Trash.Rows(x, func(rows []store.Row) error {
		if owner == t.o.Self {
			return t.takeBack(x.Slice, rows)
		}
		if !sendRows(ctx, t.o, owner, x.Slice, rows) {
			return errLater
		}
		return nil
	})
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, errLater):
		return false, nil
	case errors.Is(err, store.ErrRow) || errors.Is(err, store.ErrDamaged):
		t.o.Logger.Warn("a dropped copy cannot be given back", "slice", x.Slice, "err", err)
		return false, nil
	}
	return false, err
}

var errLater = errors.New("not now")

// takeBack merges rows into a slice that this peer acts in.
func (t *Tidier) takeBack(s partition.Slice, rows []store.Row) error {
	t.agreement.RLock()
	defer t.agreement.RUnlock()
	if !t.agreement.Acts(s) {
		return errLater
	}
	if err := t.receiver.importRows(s, rows); err != nil {
		return err
	}
	t.o.Crawler.Wake(s)
	return nil
}
