package node

import (
	"fmt"
	"io/fs"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/node/datadir"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/trash"
)

// Defaults of the trash.
const (
	Undelete    = 7 * 24 * time.Hour
	UndeleteMax = 1 << 30 // bytes
)

// openTrash opens the trash. With a limit of the disk, it gets at most 1/diskTrash of it.
func (n *Node) openTrash() (err error) {
	bounds := trash.Options{Keep: n.o.Undelete, MaxBytes: n.o.UndeleteMax}
	if n.o.MaxDisk > 0 {
		bounds.MaxBytes = min(bounds.MaxBytes, n.o.MaxDisk/diskTrash)
	}
	n.trash, err = trash.Open(n.o.fileSystem(), datadir.Trash(n.o.Dir), bounds)
	return err
}

// WantBack marks dropped copies of slices in the trash of the data directory dir, or of all slices
// if none is given. The peer gives them back, now if it runs, or when it runs next.
func WantBack(dir string, of ...partition.Slice) ([]trash.Trashed, error) {
	t, err := trash.Open(vfs.Default, datadir.Trash(dir), trash.Options{})
	if err != nil {
		return nil, err
	}
	wanted, err := t.Want(of...)
	if err == nil && len(wanted) == 0 {
		err = fmt.Errorf("%s: %w: nothing that was asked for is in the trash", datadir.Trash(dir), fs.ErrNotExist)
	}
	return wanted, err
}
