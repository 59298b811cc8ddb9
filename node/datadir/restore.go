package datadir

import (
	"context"
	"errors"
	"fmt"

	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/node/backup"
	"github.com/echo-node/echo-node/node/replica"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// MetaRestored is the name of a value in the store of a restored peer.
const MetaRestored = "restored"

// The values of MetaRestored. While the copies are not marked as forks, it is restoredNew, with
// " " + RestoredAlone behind it if no other peer is left.
const (
	restoredNew   = "new"
	RestoredJoins = "joins" // they are marked; the peer must meet its swarm
	RestoredAlone = "alone" // no other peer of the swarm is left
)

// Restored says what to do with a peer whose store has the value v of MetaRestored: forks reports
// whether its copies must be marked as forks first, and then is the value to store with the marks.
func Restored(v string) (then string, forks bool, err error) {
	switch v {
	case restoredNew:
		return RestoredJoins, true, nil
	case restoredNew + " " + RestoredAlone:
		return RestoredAlone, true, nil
	case RestoredJoins, RestoredAlone:
		return v, false, nil
	}
	return "", false, fmt.Errorf("value %q: %q: another version's", MetaRestored, v)
}

// Restore makes a data directory in o.Dir from the backup in from. o.Dir must be empty or not
// exist. Restore reads every record of the copy, which Pebble checks.
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
// node.Options.OrphanAfter. Without alone the peer runs only with an address to join, so that an old
// copy does not start beside the living swarm.
func Restore(ctx context.Context, o Options, from string, alone bool) (backup.Info, error) {
	o = o.withDefaults()
	return backup.Unpack(o.FS, from, o.Dir, func(half string, info *backup.Info) (err error) {
		if info.Records, err = renew(ctx, o, Store(half), *info, alone); err == nil && o.Key == nil {
			_, err = dht.LoadIdentity(Identity(half), true)
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
	rows := map[string][]byte{replica.MetaPlacement: nil, MetaRestored: []byte(restoredNew)}
	if alone {
		rows[MetaRestored] = []byte(restoredNew + " " + RestoredAlone)
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
