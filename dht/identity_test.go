package dht

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
)

// A new key is written once, with mode 0600, and read again.
func TestIdentity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "identity.key")
	if _, err := LoadIdentity(path, false); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("no file, not to be made: %v", err)
	}
	key, err := LoadIdentity(path, true)
	if err != nil {
		t.Fatal(err)
	}
	again, err := LoadIdentity(path, true)
	if err != nil || PeerID(again) != PeerID(key) || !strings.HasPrefix(PeerID(key), "12D3KooW") {
		t.Fatalf("%q then %q: %v", PeerID(key), PeerID(again), err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Two processes that start at once in an empty directory get the same key.
func TestIdentityMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "identity.key")
	var wg sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		wg.Go(func() {
			key, err := LoadIdentity(path, true)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = PeerID(key)
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("different identities: %v", ids)
		}
	}
}

// A damaged file, or one that others may read, is an error. It is never replaced.
func TestIdentityDamaged(t *testing.T) {
	good, err := crypto.MarshalPrivateKey(newKey(t))
	if err != nil {
		t.Fatal(err)
	}
	rsa, _, err := crypto.GenerateRSAKeyPair(2048, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := crypto.MarshalPrivateKey(rsa)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		b    []byte
		mode fs.FileMode
		want string
	}{
		"empty":     {nil, 0o600, "damaged"},
		"cut":       {good[:20], 0o600, "damaged"},
		"nonsense":  {[]byte("not a key"), 0o600, "damaged"},
		"long":      {make([]byte, maxIdentity+1), 0o600, "damaged"},
		"group":     {good, 0o640, "chmod 600"},
		"world":     {good, 0o604, "chmod 600"},
		"other key": {other, 0o600, "Ed25519"},
	} {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, c.b, c.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadIdentity(path, true); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != string(c.b) {
			t.Errorf("%s: the file was changed", name)
		}
	}
	if _, err := LoadIdentity(t.TempDir(), true); err == nil {
		t.Error("a directory passed for a key")
	}
	if _, err := LoadIdentity(filepath.Join(t.TempDir(), "no", "such", "dir"), true); err == nil {
		t.Error("made a key in a directory that is not there")
	}
}

// eachFlip flips each bit of the file name on disk, one at a time, and calls try. It restores the
// file afterwards.
func eachFlip(t *testing.T, name string, try func(where string)) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	write := func() {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			write()
			try(fmt.Sprintf("bit %d of byte %d of %s", bit, i, filepath.Base(name)))
			b[i] ^= 1 << bit
		}
	}
	write()
}

// A flipped bit on disk never gives a peer another identity.
func TestFlippedIdentity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "identity.key")
	key, err := LoadIdentity(path, true)
	if err != nil {
		t.Fatal(err)
	}
	eachFlip(t, path, func(where string) {
		if got, err := LoadIdentity(path, false); err == nil && !got.Equals(key) {
			t.Errorf("%s: the peer is %s, was %s", where, PeerID(got), PeerID(key))
		} else if err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v does not name the file", where, err)
		}
	})
}
