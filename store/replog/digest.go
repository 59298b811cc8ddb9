package replog

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// Digests returns, for each of 256 buckets, a sum over the rows on which two replicas of sl must
// agree: key states without their order of admission, records, paces, captures, items, and the Keys
// in the outbox. The sums do not depend on the order in which rows came. Attempts are not included,
// because they come and go with the owner's log. If an attempt stays after a log was cut, the state
// of its Key ends it (Trial). A Key's bucket is the first byte of Hash128; the bucket of a pace is
// the first byte of the SHA-256 of its Site.
//
// Two stores have the same sums when their logs of sl are at the same head and they got all of it
// from one owner. The head is LogHead when nothing is written to the slice; DigestsAt returns it in
// any case. Digests reads all rows of the slice.
func (s *Log) Digests(sl partition.Slice) ([256]uint64, error) {
	sums, _, err := s.DigestsAt(sl)
	return sums, err
}

// DigestsAt returns Digests and the position of the log at which they were taken.
func (s *Log) DigestsAt(sl partition.Slice) (sums [256]uint64, at uint64, err error) {
	if err := s.engine.Enter(); err != nil {
		return sums, 0, err
	}
	defer s.engine.Leave()
	snap := s.engine.DB.NewSnapshot()
	defer func() { err = errors.Join(err, snap.Close()) }()
	h, err := s.lastEntry(snap, sl)
	for _, t := range format.Handed() {
		if err != nil {
			break
		}
		if t == format.TabAttempt {
			continue
		}
		p := format.SlicePrefix(t, sl)
		err = engine.Scan(snap, p, format.After(p), func(key, value []byte) (bool, error) {
			what, err := s.agreed(t, value)
			if err != nil {
				return false, fmt.Errorf("row %q: %w", key, err)
			}
			bucket, err := bucketOfRow(t, key[9:])
			sums[bucket] += rowSum(t, key[9:], what)
			return true, err
		})
	}
	if err != nil {
		return sums, 0, fmt.Errorf("store: digests of %s: %w", sl, err)
	}
	return sums, h.Pos, nil
}

// agreed returns the part of a row's value that is the same at every replica.
func (s *Log) agreed(t format.Table, value []byte) ([]byte, error) {
	switch t {
	case format.TabKey:
		k, err := format.DecodeKeyState(value)
		k.Seq = 0
		return k.Encode(), err
	case format.TabSite:
		return s.engine.Packer.Unpack(value, store.MaxSiteRow)
	case format.TabQueued:
		return nil, nil // the number differs from peer to peer
	}
	if format.IsItem(t) {
		return s.engine.Packer.OpenItem(t, value) // each peer joins and packs items itself
	}
	return value, nil
}

// rowSum returns the first 8 bytes of a SHA-256 over a row.
func rowSum(t format.Table, rest, what []byte) uint64 {
	h := sha256.New()
	var head [9]byte
	head[0] = byte(t)
	binary.BigEndian.PutUint64(head[1:], uint64(len(rest)))
	_, _ = h.Write(head[:]) // a hash never returns an error
	_, _ = h.Write(rest)
	_, _ = h.Write(what)
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// bucketOfRow returns the bucket of a row, from the row's key after the slice.
func bucketOfRow(t format.Table, rest []byte) (byte, error) {
	if t != format.TabQueued && t != format.TabUnit {
		site, key, ok := format.CutSite(rest)
		if !ok || t == format.TabCapture && len(key) <= format.PartLen {
			return 0, format.ErrBadRow
		}
		if t == format.TabCapture {
			key = key[:len(key)-format.PartLen-1]
		}
		if format.IsItem(t) {
			k, _, err := format.CutItem(key)
			if err != nil {
				return 0, err
			}
			key = []byte(k)
		}
		if rest = key; t == format.TabSite {
			rest = []byte(site)
		}
	}
	return sha256.Sum256(rest)[0], nil
}

// BucketRows returns the rows of one bucket of Digests, as SliceRows does, for ImportRows of
// another replica. When both replicas have imported each other's rows, they agree in this bucket.
// All calls for one bucket together read all row keys of the slice once.
func (s *Log) BucketRows(sl partition.Slice, bucket int, from []byte, maxBytes int) (rows []store.Row, next []byte,
	err error) {
	return s.sliceRows(sl, from, maxBytes, func(t format.Table, rest []byte) bool {
		b, err := bucketOfRow(t, rest)
		return err == nil && int(b) == bucket && t != format.TabAttempt
	})
}
