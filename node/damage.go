package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/echo-node/echo-node/node/datadir"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// dataDir returns the options of the data directory.
func (o Options) dataDir() datadir.Options {
	return datadir.Options{Dir: o.Dir, FS: o.FS, Key: o.Key, Logger: o.Logger, Fatal: o.Fatal}
}

// openStore opens the store. If it is damaged and other peers have what was lost, it repairs it
// first.
func (n *Node) openStore(ctx context.Context) (err error) {
	o := store.Options{FS: n.o.FS, MaxBytes: n.o.MaxDisk, Logger: n.log, Fatal: n.o.Fatal, Logged: n.logged,
		Ahead: n.clock.Saw, Damaged: n.sawDamage}
	defer func() {
		if n.o.FS != nil && n.store != nil {
			n.disk.other = func() int64 { return n.store.Stats().DiskBytes }
		}
	}()
	n.store, err = db.Open(datadir.Store(n.o.Dir), o)
	if !errors.Is(err, store.ErrDamaged) {
		return err
	}
	n.log.Error("the store is damaged", "err", err)
	done, err := datadir.Mend(ctx, n.o.dataDir())
	if err != nil {
		return err
	}
	n.log.Warn("the store was mended: other peers bring what was lost", "slices", done.Fetched, "lost", done.Lost)
	select {
	case <-n.damaged: // damage reported while it was opened
	default:
	}
	n.store, err = db.Open(datadir.Store(n.o.Dir), o)
	return err
}

// sawDamage is store.Options.Damaged.
func (n *Node) sawDamage(err error) {
	select {
	case n.damaged <- err:
	default:
	}
}

// watchDamage ends Run when the store proves to be damaged. The next start repairs it.
func (n *Node) watchDamage(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-n.damaged:
		return err
	}
}

// explain returns err, with which Run ended, or the damage that caused it, with advice.
func (n *Node) explain(err error) error {
	damage := n.store.Damaged()
	if err == nil || damage == nil {
		return err
	}
	return fmt.Errorf("%w: start again: what other peers keep they bring again, for the rest see echo-node repair",
		damage)
}

// restored returns the value of datadir.MetaRestored. marked reports whether the copies are marked as
// forks.
func (n *Node) restored() (what string, marked bool, err error) {
	b, err := n.store.Meta(datadir.MetaRestored)
	if isNotExist(err) {
		return "", true, nil
	}
	if err != nil {
		return "", false, err
	}
	what, forks, err := datadir.Restored(string(b))
	return what, !forks, err
}

// mayRun returns an error if a restored peer keeps nothing yet and has no address to join.
func (n *Node) mayRun(join []string) error {
	what, _, err := n.restored()
	if err != nil || what != datadir.RestoredJoins || n.agreement.HeldBefore() || len(join) > 0 {
		return err
	}
	return fmt.Errorf("%s was restored from a backup: give --join with a peer of the swarm %s, or restore it with --alone if none is left", n.o.Dir, n.charter.Name)
}
