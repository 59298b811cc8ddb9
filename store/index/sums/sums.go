// Package sums finds damage in the files of an index, before they are read.
package sums

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/echo-node/echo-node/store/engine"
)

// bleve maps the files of the index into memory and does not check their sums. A changed byte would
// give a wrong answer, or worse. So Open reads the files once. A segment ends with the sum of the
// bytes before it. The list of segments has no sum. Its sum is noted every sumEvery and when the
// index is closed, together with the transaction it belongs to. After a crash, the noted sum may
// belong to an earlier transaction; then only the page tree of the list is checked (Walk). Damage
// only costs time: the index is rebuilt from the store.
const (
	// RootName is the file with the list of segments. SumName is the file with its sum.
	RootName = "root.bolt"
	SumName  = "root.sum"
	crcBytes = 4
)

// Check returns an error if a file of the index in dir is damaged.
func Check(dir string) error {
	all, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range all {
		if !strings.HasSuffix(f.Name(), ".zap") {
			continue
		}
		if err := intactSegment(filepath.Join(dir, f.Name())); err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	return intactRoot(dir)
}

// intactRoot checks the list of segments.
func intactRoot(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, RootName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the process ended while it created the index, or the file was removed
	}
	if err != nil {
		return err
	}
	is, err := Walk(b)
	if err != nil {
		return fmt.Errorf("%s: %w", RootName, err)
	}
	b, err = os.ReadFile(filepath.Join(dir, SumName))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	var was State
	if engine.ReadSummed(b, &was) && was.Tx == is.Tx && was.Sum != is.Sum {
		return fmt.Errorf("%s: at transaction %d its sum was %016x, it is %016x", RootName, is.Tx, was.Sum, is.Sum)
	}
	return nil
}

// intactSegment compares the sum at the end of a segment. A segment that a crash left unfinished is
// not part of the index, which removes it.
func intactSegment(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < crcBytes {
		return nil
	}
	h := crc32.NewIEEE()
	if _, err := io.CopyN(h, f, info.Size()-crcBytes); err != nil {
		return err
	}
	var b [crcBytes]byte
	if _, err := io.ReadFull(f, b[:]); err != nil {
		return err
	}
	if want := binary.BigEndian.Uint32(b[:]); want != h.Sum32() {
		return fmt.Errorf("damaged: its sum is %08x, it says %08x", h.Sum32(), want)
	}
	return nil
}

// Note writes the sum of the list of segments to a file, whether the index is open or not. When the
// list changes during the call, Note leaves it for the next time. done is what the last Note wrote;
// the result is what is written now.
func Note(dir string, done State) (State, error) {
	root := filepath.Join(dir, RootName)
	tx, err := latestTx(root)
	if err != nil || tx == done.Tx {
		return done, err
	}
	b, err := os.ReadFile(root)
	if err != nil {
		return done, err
	}
	is, err := Walk(b)
	if err != nil {
		return done, nil //nolint:nilerr // it was read while it was written; damage is found by who opens it
	}
	// Bolt does not overwrite the pages of a transaction before its successor is complete. So the
	// read data is whole if there is no successor yet.
	if tx, err = latestTx(root); err != nil || tx != is.Tx {
		return done, err
	}
	if b, err = engine.Summed(is); err != nil {
		return done, err
	}
	part := filepath.Join(dir, SumName+".part")
	if err := os.WriteFile(part, b, 0o600); err != nil {
		return done, err
	}
	return is, os.Rename(part, filepath.Join(dir, SumName))
}
