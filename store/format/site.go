package format

import (
	"fmt"
	"time"

	"github.com/echo-node/echo-node/partition/strictjson"
	"github.com/echo-node/echo-node/store"
)

// SiteRow is the stored form of a Site. Its robots.txt bodies are large and rarely change, so they
// are separate rows and not written with every fetch.
type SiteRow struct {
	store.Site
	Robots map[string]RobotsHead // hides Site.Robots
}

// RobotsHead describes a robots.txt whose body is a separate row.
type RobotsHead struct {
	Status  int
	Fetched time.Time
	Expires time.Time
	Sum     []byte // SHA-256 of the body
}

// DecodeSiteRow decodes the row of a pace.
func (p *Packer) DecodeSiteRow(v []byte) (row SiteRow, err error) {
	b, err := p.Unpack(v, store.MaxSiteRow)
	if err == nil {
		err = strictjson.Unmarshal(b, &row)
	}
	return row, err
}

// ParseSite decodes the JSON of a Site.
func ParseSite(b []byte) (store.Site, error) {
	var st store.Site
	if err := strictjson.Unmarshal(b, &st); err != nil {
		return store.Site{}, fmt.Errorf("site: %w: %w", ErrBadRow, err)
	}
	return st, nil
}
