package dht

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
)

// maxIdentity is the longest identity file in bytes. A real one has 68.
const maxIdentity = 4096

// LoadIdentity reads the Ed25519 key of a peer from path, in libp2p's protobuf form. If there is no
// such file and create is set, it makes a new key and writes it durably with mode 0600. After a
// crash the file is whole or does not exist. A file that other users may access, or that is
// damaged, is an error. So a peer does not get a new identity by accident.
func LoadIdentity(path string, create bool) (crypto.PrivKey, error) {
	key, err := readIdentity(path)
	if errors.Is(err, fs.ErrNotExist) && create {
		if err = createIdentity(path); err == nil {
			key, err = readIdentity(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("load identity: %w", err)
	}
	return key, nil
}

// readIdentity reads and checks the key. The error wraps fs.ErrNotExist if there is no file.
func readIdentity(path string) (crypto.PrivKey, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	// Other users of the computer could act as this peer.
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %04o, others may read the key: chmod 600 it", path, perm)
	}
	// One byte more than allowed shows that the file is too long.
	b, err := io.ReadAll(io.LimitReader(f, maxIdentity+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxIdentity {
		return nil, fmt.Errorf("%s is damaged: longer than %d bytes", path, maxIdentity)
	}
	key, err := crypto.UnmarshalPrivateKey(b)
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", path, err)
	}
	if key.Type() != crypto.Ed25519 {
		return nil, fmt.Errorf("%s holds a key of another kind than Ed25519", path)
	}
	raw, err := key.Raw() // the seed, then its public key; libp2p does not compare the two
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", path, err)
	}
	if !bytes.Equal(ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize]), raw) {
		return nil, fmt.Errorf("%s is damaged: its public key is not that of its private one. Bring back a copy of it. To start as a new peer, move it away", path)
	}
	return key, nil
}

// createIdentity makes a key. If another process makes one at the same time, that one stays.
func createIdentity(path string) error {
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		return err
	}
	b, err := crypto.MarshalPrivateKey(key)
	if err != nil {
		return err
	}
	tmp, err := writeTemp(path, b)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp) }()
	// This makes a link instead of a rename, because a link never replaces an existing key.
	if err := os.Link(tmp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// writeFile durably replaces the content of path by b, with mode 0600. After a crash, path has the
// old or the new content.
func writeFile(path string, b []byte) error {
	tmp, err := writeTemp(path, b)
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return syncDir(filepath.Dir(path))
}

// writeTemp writes b to a new file in the directory of path, and syncs it. After an error it
// removes the file.
func writeTemp(path string, b []byte) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// syncDir makes a new name in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// PeerID returns the id of the peer with this key, as text.
func PeerID(key crypto.PrivKey) string {
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return "" // impossible for a key from LoadIdentity
	}
	return id.String()
}
