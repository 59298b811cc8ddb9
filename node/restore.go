package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/node/backup"
	"github.com/echo-node/echo-node/node/replica"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// metaRestored is the name of a value in the store of a restored peer.
const metaRestored = "restored"

// The values of metaRestored.
const (
	restoredNew   = "new"   // its copies are not marked as forks yet
	restoredJoins = "joins" // they are marked; the peer must meet its swarm
	restoredAlone = "alone" // no other peer of the swarm is left
)

// Restore makes a data directory in o.Dir from the backup in from. o.Dir must be empty or not
// exist. Restore reads every record of the copy, which Pebble checks. Only Dir, FS and Logger of o
// are used.
//
// The result is a new peer. An old backup no longer says truly which peers keep which slice, or
// what was promised. A replica that forgot what it accepted could let a slice have two owners
// (package quorum). A replica that forgot acknowledged rows could be chosen as their owner. So
// neither the identity nor the agreements are restored. The rows are restored: each slice becomes a
// copy of a fork that no other peer knows. The peer reconciles it with the owner's copy: the newer
// fetch wins, and a known Key stays known. Only then does it forget the copy or become a real
// replica.
//
// alone says that no other peer of the swarm is left. Then this peer adopts all slices after
// Options.OrphanAfter. Without alone the peer runs only with an address to join, so that an old
// copy does not start beside the living swarm.
func Restore(ctx context.Context, o Options, from string, alone bool) (backup.Info, error) {
	o = o.withDefaults()
	return backup.Unpack(o.fileSystem(), from, o.Dir, func(half string, info *backup.Info) (err error) {
		if info.Records, err = renew(ctx, o, filepath.Join(half, "store"), *info, alone); err == nil && o.Key == nil {
			_, err = dht.LoadIdentity(filepath.Join(half, identityName), true)
		}
		return err
	})
}

// renew compares the store in dir with info, removes what was true only for the peer that made the
// backup, and counts the records.
func renew(ctx context.Context, o Options, dir string, info backup.Info, alone bool) (records int64, err error) {
	s, err := db.Open(dir, store.Options{FS: o.FS, Logger: o.Logger})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if c := s.Charter(); c.Digest() != info.Charter || s.ID() != info.Store {
		return 0, fmt.Errorf("the store is %s of the swarm %q, charter %s, and not what %s says", s.ID(), c.Name,
			c.Digest(), backup.Name)
	}
	err = s.Archive.Records("", func(store.Record) (bool, error) {
		records++
		return true, ctx.Err()
	})
	if err != nil {
		return records, err
	}
	rows := map[string][]byte{replica.MetaPlacement: nil, metaRestored: []byte(restoredNew)}
	if alone {
		rows[metaRestored] = []byte(restoredNew + " " + restoredAlone)
	}
	err = s.Metas(replica.MetaSets, func(name string, _ []byte) error {
		rows[name] = nil
		return nil
	})
	if err != nil {
		return records, err
	}
	return records, s.SetMetas(rows)
}

// restored returns the value of metaRestored. marked reports whether the copies are marked as
// forks.
func (n *Node) restored() (what string, marked bool, err error) {
	b, err := n.store.Meta(metaRestored)
	if isNotExist(err) {
		return "", true, nil
	}
	if err != nil {
		return "", false, err
	}
	switch string(b) {
	case restoredNew:
		return restoredJoins, false, nil
	case restoredNew + " " + restoredAlone:
		return restoredAlone, false, nil
	case restoredJoins, restoredAlone:
		return string(b), true, nil
	}
	return "", false, fmt.Errorf("value %q: %q: another version's", metaRestored, b)
}

// mayRun returns an error if a restored peer keeps nothing yet and has no address to join.
func (n *Node) mayRun(join []string) error {
	what, _, err := n.restored()
	if err != nil || what != restoredJoins || n.agreement.HeldBefore() || len(join) > 0 {
		return err
	}
	return fmt.Errorf("%s was restored from a backup: give --join with a peer of the swarm %s, or restore it with --alone if none is left", n.o.Dir, n.charter.Name)
}
