// Package datadir is the data directory of a peer that does not run: what is in it, who may read it,
// and how it is repaired, or made from a backup.
package datadir

import (
	"log/slog"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/libp2p/go-libp2p/core/crypto"

	"github.com/echo-node/echo-node/dht"
)

const identityName = "identity.key"

// Identity returns the file of the peer's private key in the data directory dir.
func Identity(dir string) string { return filepath.Join(dir, identityName) }

// Store returns the directory of the store.
func Store(dir string) string { return filepath.Join(dir, "store") }

// Trash returns the directory of the trash.
func Trash(dir string) string { return filepath.Join(dir, "trash") }

// Exists reports whether dir has a peer's data.
func Exists(dir string) bool {
	_, err := os.Stat(Store(dir))
	return err == nil
}

// Options name a data directory.
type Options struct {
	Dir    string         // required
	FS     vfs.FS         // nil = the disk
	Key    crypto.PrivKey // nil = the one in Dir
	Logger *slog.Logger   // nil = discard
	Fatal  func(error)    // see store.Options
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// identity returns o.Key, or the key in the data directory.
func (o Options) identity() (crypto.PrivKey, error) {
	if o.Key != nil {
		return o.Key, nil
	}
	return dht.LoadIdentity(Identity(o.Dir), false)
}
