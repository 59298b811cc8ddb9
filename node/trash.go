package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/replica/message"
	"github.com/echo-node/echo-node/node/replica/quorum"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/trash"
)

// Defaults of the trash.
const (
	Undelete      = 7 * 24 * time.Hour
	UndeleteMax   = 1 << 30          // bytes
	trashEvery    = 10 * time.Second // how often it is looked at
	trashFolder   = "trash"
	whySurplus    = "surplus"
	whyReconciled = "united"
)

// TrashDir is where the data directory dir has its trash.
func TrashDir(dir string) string { return filepath.Join(dir, trashFolder) }

func (n *Node) openTrash() (err error) {
	bounds := trash.Options{Keep: n.o.Undelete, MaxBytes: n.o.UndeleteMax}
	if n.o.MaxDisk > 0 {
		bounds.MaxBytes = min(bounds.MaxBytes, n.o.MaxDisk/diskTrash)
	}
	n.trash, err = trash.Open(n.o.fileSystem(), TrashDir(n.o.Dir), bounds)
	return err
}

// WantBack has the peer of the data directory dir, running or not, give back the copies of
// slices that it dropped; of all slices when none is given.
func WantBack(dir string, of ...partition.Slice) ([]trash.Trashed, error) {
	t, err := trash.Open(vfs.Default, TrashDir(dir), trash.Options{})
	if err != nil {
		return nil, err
	}
	wanted, err := t.Want(of...)
	if err == nil && len(wanted) == 0 {
		err = fmt.Errorf("%s: %w: nothing that was asked for is in the trash", TrashDir(dir), fs.ErrNotExist)
	}
	return wanted, err
}

// keepTrash puts the copy of s, which is whole, into the trash before it is dropped. false:
// that failed, and the copy stays for now.
func (n *Node) keepTrash(s partition.Slice, why string) bool {
	err := n.trash.Put(n.store.Log, s, why, time.Now())
	switch {
	case errors.Is(err, trash.ErrFull):
		n.count.trashFull.Add(1)
		n.log.Debug("a copy is dropped that the trash has no room for", "slice", s, "err", err)
	case err != nil:
		n.log.Warn("a copy cannot be put into the trash and is not dropped", "slice", s, "err", err)
		return false
	}
	return true
}

// tidyTrash takes out what is too old and gives back what a person wants back.
func (n *Node) tidyTrash(ctx context.Context, now time.Time) error {
	if now.Sub(n.trashTidied) >= trashEvery {
		n.trashTidied = now
		if err := n.trash.Tidy(now); err != nil {
			n.log.Warn("trash", "err", err)
			return nil
		}
	}
	for _, x := range n.trash.List() {
		if !x.Wanted {
			continue
		}
		given, err := n.giveBack(ctx, x)
		if err != nil {
			return err
		}
		if !given {
			continue
		}
		n.log.Info("a dropped copy is given back", "slice", x.Slice, "dropped", x.At)
		if err := n.trash.Remove(x); err != nil {
			n.log.Warn("trash", "err", err)
		}
	}
	return nil
}

// giveBack reconciles the rows of x with those of the slice's present owner; this peer's own
// old copy it believes. false: not now. Giving them again changes nothing more, so a crash
// in the middle loses nothing. The error is the store's.
func (n *Node) giveBack(ctx context.Context, x trash.Trashed) (bool, error) {
	owner := n.quorum.Owner(x.Slice)
	if owner != n.id && !n.placement.Alive(owner) || owner == n.id && !n.acts(x.Slice) {
		return false, nil
	}
	err := n.trash.Rows(x, func(rows []store.Row) error {
		if owner == n.id {
			return n.takeBack(x.Slice, rows)
		}
		if !n.sendRows(ctx, owner, x.Slice, message.Rows(rows)) {
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
		n.log.Warn("a dropped copy cannot be given back", "slice", x.Slice, "err", err)
		return false, nil
	}
	return false, err
}

var errLater = errors.New("not now")

// takeBack merges rows of a slice that this peer acts in.
func (n *Node) takeBack(s partition.Slice, rows []store.Row) error {
	n.deciding.RLock()
	defer n.deciding.RUnlock()
	if !n.acts(s) {
		return errLater
	}
	if err := n.importRows(s, rows); err != nil {
		return err
	}
	n.crawler.Wake(s)
	return nil
}

func (n *Node) trashStatus() (t api.Trash) {
	for _, x := range n.trash.List() {
		t.Slices++
		t.Bytes += x.Bytes
		if x.Wanted {
			t.Wanted++
		}
	}
	return t
}

// mayDrop is this peer's word that it has s, so that peer may drop its copy: as the owner,
// that no successor is under way and that the copy is not counted on; as another replica,
// that its own copy is whole.
func (n *Node) mayDrop(peer string, s partition.Slice, c quorum.ReplicaSet) bool {
	if n.quorum.Owner(s) == n.id {
		return n.quorum.InForce(s, c) && !n.replicator.counts(s, peer)
	}
	own := n.quorum.ReplicaSet(s)
	return own.Compare(c) == 0 && own.Has(n.id) && n.quorum.Has(s)
}
