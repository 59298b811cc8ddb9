package store

import (
	"fmt"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// checkpoint is what a source left of a Key, and when. An empty one says that
// there is none any more.
type checkpoint struct {
	at    time.Time
	bytes []byte
}

func (c checkpoint) encode() []byte {
	var e encoder
	e.byte(rowVersion)
	e.time(c.at)
	e.text(string(c.bytes))
	return e.b
}

func parseCheckpoint(b []byte) (checkpoint, error) {
	d := newDecoder(b)
	c := checkpoint{at: d.time(), bytes: []byte(d.text(MaxCheckpointBytes))}
	return c, d.end("checkpoint")
}

func checkCheckpoint(id itemID, b []byte) ([]byte, time.Time, error) {
	c, err := parseCheckpoint(b)
	if err == nil && id.part != "" {
		err = errBadRow
	}
	return c.encode(), c.at, err
}

// Checkpoint is what the last Commit of k in sl (0: its hash slice) left for the
// source to go on with, here or at the peer that had the slice then; nil when
// there is nothing.
func (s *Store) Checkpoint(sl partition.Slice, k partition.Key) ([]byte, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	v, err := s.get(itemID{siteID: s.idIn(sl, k), table: tabCheckpoint, key: k}.row())
	if err == nil {
		v, err = s.packer.openItem(tabCheckpoint, v)
	}
	var c checkpoint
	if err == nil {
		c, err = parseCheckpoint(v)
	}
	if ignoreAbsent(err) != nil {
		return nil, fmt.Errorf("store: checkpoint of %s: %w", k, err)
	}
	if len(c.bytes) == 0 {
		return nil, nil
	}
	return c.bytes, nil
}
