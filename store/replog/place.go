package replog

import (
	"fmt"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// incomingPlacement validates a row of another peer as if an enemy had sent it.
func (s *Log) incomingPlacement(sl partition.Slice, u partition.Unit, value []byte) (*store.Placement, error) {
	p, err := format.DecodePlacement(u, value)
	if err != nil {
		return nil, err
	}
	k, ok := s.engine.Charter().UnitKey(u)
	if !ok || !s.engine.Charter().MayHold(sl, k) {
		return nil, fmt.Errorf("unit %.80q is none of %s", u, sl)
	}
	return &p, s.queue.CheckPlacement(format.SiteID{Slice: sl, Site: k.Site()}, k, p)
}
