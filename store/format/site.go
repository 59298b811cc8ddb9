package format

import (
	"fmt"
	"time"

	"github.com/echo-node/echo-node/partition/strictjson"
	"github.com/echo-node/echo-node/store"
)

// SiteRow is a Site as it is kept: its robots.txt bodies, which are large and
// seldom change, are rows of their own and not written with every fetch.
type SiteRow struct {
	store.Site
	Robots map[string]RobotsHead // hides Site.Robots
}

type RobotsHead struct {
	Status  int
	Fetched time.Time
	Expires time.Time
	Sum     []byte // SHA-256 of the body
}

func (p *Packer) DecodeSiteRow(v []byte) (row SiteRow, err error) {
	b, err := p.Unpack(v, store.MaxSiteRow)
	if err == nil {
		err = strictjson.Unmarshal(b, &row)
	}
	return row, err
}

func ParseSite(b []byte) (store.Site, error) {
	var st store.Site
	if err := strictjson.Unmarshal(b, &st); err != nil {
		return store.Site{}, fmt.Errorf("site: %w: %w", ErrBadRow, err)
	}
	return st, nil
}
