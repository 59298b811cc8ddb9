package engine

import (
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/format"
)

// IDOf returns the SiteID of k in its hash slice.
func (s *Engine) IDOf(k partition.Key) format.SiteID { return s.IDIn(0, k) }

// IDIn returns the SiteID of k in the slice sl; 0 is the hash slice of k.
func (s *Engine) IDIn(sl partition.Slice, k partition.Key) format.SiteID {
	if sl == 0 {
		sl = s.charter.Slice(k)
	}
	return format.SiteID{Slice: sl, Site: k.Site()}
}
