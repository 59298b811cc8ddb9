package accounts

import (
	"fmt"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// Checkpoint returns the data with which the source continues k in sl (0: its hash slice). The last
// Commit of k stored it, here or at the peer that had the slice then. It is nil when there is none.
func (s *Accounts) Checkpoint(sl partition.Slice, k partition.Key) ([]byte, error) {
	if err := s.engine.Enter(); err != nil {
		return nil, err
	}
	defer s.engine.Leave()
	v, err := s.engine.Get(format.ItemID{SiteID: s.engine.IDIn(sl, k), Table: format.TabCheckpoint, Key: k}.Row())
	if err == nil {
		v, err = s.engine.Packer.OpenItem(format.TabCheckpoint, v)
	}
	var c format.Checkpoint
	if err == nil {
		c, err = format.ParseCheckpoint(v)
	}
	if engine.IgnoreAbsent(err) != nil {
		return nil, fmt.Errorf("store: checkpoint of %s: %w", k, err)
	}
	if len(c.Bytes) == 0 {
		return nil, nil
	}
	return c.Bytes, nil
}
