package store

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/echo-node/echo-node/partition"
)

// Digests are, for each of 256 buckets, a sum over what two replicas of sl must
// agree on: key states but for their order of admission, records, paces,
// captures, items, and the Keys in the outbox. The sums do not depend on the order in which rows
// came. Attempts are not in them: they come and go with the owner's log, and one that stays behind
// where a log was cut is over by the state of its Key (Trial). A Key's bucket is the first byte of Hash128; a pace's,
// that of SHA-256 of its Site.
//
// Two stores whose logs of sl are at the same head, and that got all of it from
// one owner, have the same sums; the head is LogHead when the slice is still,
// and that of DigestsAt in any case. Cost: all rows of the slice are read.
func (s *Store) Digests(sl partition.Slice) ([256]uint64, error) {
	sums, _, err := s.DigestsAt(sl)
	return sums, err
}

// DigestsAt is Digests, and the position of the log they are of.
func (s *Store) DigestsAt(sl partition.Slice) (sums [256]uint64, at uint64, err error) {
	if err := s.enter(); err != nil {
		return sums, 0, err
	}
	defer s.leave()
	snap := s.db.NewSnapshot()
	defer func() { err = errors.Join(err, snap.Close()) }()
	h, err := s.lastEntry(snap, sl)
	for _, t := range handed() {
		if err != nil {
			break
		}
		if t == tabAttempt {
			continue
		}
		p := slicePrefix(t, sl)
		err = scan(snap, p, after(p), func(key, value []byte) (bool, error) {
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
	return sums, h.pos, nil
}

// agreed is what of a row's value is the same at every replica.
func (s *Store) agreed(t table, value []byte) ([]byte, error) {
	switch t {
	case tabKey:
		k, err := decodeKeyState(value)
		k.seq = 0
		return k.encode(), err
	case tabSite:
		return s.packer.unpack(value, maxSiteRow)
	case tabQueued:
		return nil, nil // the number is each peer's own
	}
	if isItem(t) {
		return s.packer.openItem(t, value) // joined here, and so packed here
	}
	return value, nil
}

func rowSum(t table, rest, what []byte) uint64 {
	h := sha256.New()
	var head [9]byte
	head[0] = byte(t)
	binary.BigEndian.PutUint64(head[1:], uint64(len(rest)))
	_, _ = h.Write(head[:]) // a hash takes all
	_, _ = h.Write(rest)
	_, _ = h.Write(what)
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// bucketOfRow is where a row, named by its key after the slice, is summed up.
func bucketOfRow(t table, rest []byte) (byte, error) {
	if t != tabQueued && t != tabUnit {
		site, key, ok := cutSite(rest)
		if !ok || t == tabCapture && len(key) <= partLen {
			return 0, errBadRow
		}
		if t == tabCapture {
			key = key[:len(key)-partLen-1]
		}
		if isItem(t) {
			k, _, err := cutItem(key)
			if err != nil {
				return 0, err
			}
			key = []byte(k)
		}
		if rest = key; t == tabSite {
			rest = []byte(site)
		}
	}
	return sha256.Sum256(rest)[0], nil
}

// BucketRows are the rows of one bucket of Digests, as SliceRows gives them,
// for another replica's ImportRows: after both have imported the other's, they
// agree in it. Cost: all row keys of the slice are read, once in all calls of a
// bucket.
func (s *Store) BucketRows(sl partition.Slice, bucket int, from []byte, maxBytes int) (rows []Row, next []byte,
	err error) {
	return s.sliceRows(sl, from, maxBytes, func(t table, rest []byte) bool {
		b, err := bucketOfRow(t, rest)
		return err == nil && int(b) == bucket && t != tabAttempt
	})
}
