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

// metaRestored is set in a store that Restore made.
const metaRestored = "restored"

// What metaRestored says.
const (
	restoredNew   = "new"   // its copies are not marked yet
	restoredJoins = "joins" // they are; it must meet its swarm
	restoredAlone = "alone" // no other peer of the swarm is left
)

// Restore makes a data directory in o.Dir, which must be empty or not exist, of
// the backup in from. It reads every record of the copy, which Pebble checks. Only
// Dir, FS and Logger of o count.
//
// The peer that it makes is a new one. What an old backup says of who keeps which
// slice, and what was promised, is not true any more: a replica that forgot what it
// accepted could let a slice have two owners (package quorum), and one that forgot
// rows it had acknowledged could be chosen as their owner. So neither identity nor
// agreements are restored. The rows are: each slice of them is a copy of a fork that
// nobody else knows, which the peer reconciles with the owner's (the newer fetch wins,
// a Key known stays known) before it forgets it or keeps that slice in earnest.
//
// alone says that no other peer of the swarm is left: after Options.OrphanAfter this
// one adopts all slices. Without it the peer does not run unless it is told whom to
// join, so that an old copy does not set itself up beside the living swarm.
func Restore(ctx context.Context, o Options, from string, alone bool) (backup.Info, error) {
	o = o.withDefaults()
	return backup.Unpack(o.fileSystem(), from, o.Dir, func(half string, info *backup.Info) (err error) {
		if info.Records, err = renew(ctx, o, filepath.Join(half, "store"), *info, alone); err == nil && o.Key == nil {
			_, err = dht.LoadIdentity(filepath.Join(half, identityName), true)
		}
		return err
	})
}

// renew checks the store in dir against info, takes out of it what was true of the
// peer that made it alone, and counts its records.
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

// restored is what metaRestored says; marked says that the copies are.
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

// mayRun refuses a restored peer that keeps nothing yet and has nobody to join.
func (n *Node) mayRun(join []string) error {
	what, _, err := n.restored()
	if err != nil || what != restoredJoins || n.agreement.HeldBefore() || len(join) > 0 {
		return err
	}
	return fmt.Errorf("%s was restored from a backup: give --join with a peer of the swarm %s, or restore it with --alone if none is left", n.o.Dir, n.charter.Name)
}
