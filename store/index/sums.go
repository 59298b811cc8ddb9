package index

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// The files of the index are read as they lie in memory, without a look at their sums: a
// byte that changed would be a wrong answer, or worse. So Open reads them once. A segment
// ends with the sum of what is before it. The list of segments has none: its own is written
// down when the index is closed, and taken away when it is opened, as it does not hold
// while the index is written. Damage costs time only: the index is made anew from the store.
const (
	rootName = "root.bolt"
	sumName  = "root.sum"
	crcBytes = 4
)

// intact finds a damaged file of the index in dir.
func intact(dir string) error {
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
	b, err := os.ReadFile(filepath.Join(dir, sumName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the process ended without closing it
	}
	if err != nil {
		return err
	}
	var was rootSum
	b, own, _ := bytes.Cut(b, []byte{'\n'})
	is, err := sumOf(filepath.Join(dir, rootName))
	if err != nil {
		return err
	}
	if string(own) == fmt.Sprintf("%016x\n", xxhash.Sum64(b)) && json.Unmarshal(b, &was) == nil && was != is {
		return fmt.Errorf("%s: it was left with the sum %016x, and has %016x", rootName, was.Sum, is.Sum)
	}
	return os.Remove(filepath.Join(dir, sumName))
}

// intactSegment compares the sum at the end of a segment. One that was never finished,
// as after a crash, is no part of the index, which removes it.
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

type rootSum struct {
	Size int64  `json:"size"`
	Sum  uint64 `json:"xxh64"`
}

func sumOf(name string) (s rootSum, err error) {
	f, err := os.Open(name)
	if err != nil {
		return s, err
	}
	h := xxhash.New()
	s.Size, err = io.Copy(h, f)
	s.Sum = h.Sum64()
	return s, errors.Join(err, f.Close())
}

// noteSum writes down the sum of the list of segments, which is closed.
func noteSum(dir string) error {
	s, err := sumOf(filepath.Join(dir, rootName))
	if err != nil {
		return err
	}
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	b = fmt.Appendf(b, "\n%016x\n", xxhash.Sum64(b)) // of itself
	part := filepath.Join(dir, sumName+".part")
	if err := os.WriteFile(part, b, 0o600); err != nil {
		return err
	}
	return os.Rename(part, filepath.Join(dir, sumName))
}
