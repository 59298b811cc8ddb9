package queue

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// Site writes the pace of id and the row that finds it by name.
func (t *Batch) Site(id format.SiteID, st store.Site) error {
	st.Site, st.Slice = id.Site, id.Slice
	st.NextAllowed = st.NextAllowed.UTC() // the same bytes at every replica
	old, err := t.s.SiteRow(t.s.engine.DB, id)
	if engine.IgnoreAbsent(err) != nil {
		return err
	}
	st.Robots = FewRobots(st.Robots)
	name := format.NamePace
	row := format.SiteRow{Site: st, Robots: make(map[string]format.RobotsHead, len(st.Robots))}
	row.Site.Robots = nil
	for origin, r := range st.Robots {
		sum := sha256.Sum256(r.Body)
		row.Robots[origin] = format.RobotsHead{Status: r.Status, Fetched: r.Fetched.UTC(), Expires: r.Expires.UTC(),
			Sum: sum[:]}
		if had, ok := old.Robots[origin]; ok && bytes.Equal(had.Sum, sum[:]) {
			continue
		}
		name = format.NameSite
		if err := t.Rows.Set(format.RobotsKey(id, origin), t.s.engine.Packer.Pack(r.Body), nil); err != nil {
			return err
		}
	}
	for origin := range old.Robots {
		if _, ok := st.Robots[origin]; !ok {
			_ = t.Rows.Delete(format.RobotsKey(id, origin), nil)
		}
	}
	v, err := t.s.engine.Packer.PackJSON(row)
	if err != nil {
		return err
	}
	return t.SiteRow(id, v, name)
}

// FewRobots returns robots without the oldest entries when there are too many, or when together
// they are too large. Those entries are fetched again.
func FewRobots(robots map[string]store.Robots) map[string]store.Robots {
	size := 0
	for _, r := range robots {
		size += len(r.Body)
	}
	for mine := false; len(robots) > store.MaxOrigins || size > store.MaxSiteRobots; {
		if !mine {
			robots, mine = maps.Clone(robots), true
		}
		oldest := ""
		for origin, r := range robots {
			if old, ok := robots[oldest]; !ok || old.Newer(r) || !r.Newer(old) && origin < oldest {
				oldest = origin
			}
		}
		size -= len(robots[oldest].Body)
		delete(robots, oldest)
	}
	return robots
}

// SiteRow writes the row of a pace. The rows of its robots.txt are written already.
func (t *Batch) SiteRow(id format.SiteID, value []byte, name byte) error {
	_ = t.Rows.Set(format.SiteName(id.Site), binary.BigEndian.AppendUint64(nil, uint64(id.Slice)), nil)
	row := format.SitePrefix(format.TabSite, id)
	size := len(value)
	if name == format.NameSite {
		size = engine.SiteBytes
	}
	t.Name(id.Slice, name, row[9:], size, time.Time{})
	return t.Rows.Set(row, value, nil)
}

// SiteRow returns the row of the pace of id, or ErrNotExist.
func (s *Queue) SiteRow(r pebble.Reader, id format.SiteID) (format.SiteRow, error) {
	v, err := engine.Get(r, format.SitePrefix(format.TabSite, id))
	if err != nil {
		return format.SiteRow{}, err
	}
	return s.engine.Packer.DecodeSiteRow(v)
}

// SiteIn builds a Site from its rows. The caller holds the lock of its slice, or accepts a
// robots.txt that is newer than the row.
func (s *Queue) SiteIn(r pebble.Reader, id format.SiteID) (store.Site, error) {
	row, err := s.SiteRow(r, id)
	if err != nil {
		return store.Site{}, err
	}
	st := row.Site
	for origin, h := range row.Robots {
		v, err := engine.Get(r, format.RobotsKey(id, origin))
		if errors.Is(err, store.ErrNotExist) {
			continue // deleted since the row was read
		}
		if err != nil {
			return store.Site{}, err
		}
		body, err := s.engine.Packer.Unpack(v, store.MaxRobotsBytes)
		if err != nil {
			return store.Site{}, fmt.Errorf("robots of %s: %w", origin, err)
		}
		if st.Robots == nil {
			st.Robots = make(map[string]store.Robots, len(row.Robots))
		}
		st.Robots[origin] = store.Robots{Body: body, Status: h.Status, Fetched: h.Fetched, Expires: h.Expires}
	}
	return st, nil
}

// Site returns the pace of a site, or the zero Site and ErrNotExist. When the accounts of one
// service are in several slices, each slice has its own row, which moves with the slice. Site
// returns the row that was written last: it is the pace of this peer.
func (s *Queue) Site(site partition.Site) (store.Site, error) {
	if err := s.engine.Enter(); err != nil {
		return store.Site{}, err
	}
	defer s.engine.Leave()
	st, err := s.siteByName(site)
	if err != nil {
		return store.Site{}, fmt.Errorf("store: site %s: %w", site, err)
	}
	return st, nil
}

func (s *Queue) siteByName(site partition.Site) (store.Site, error) {
	v, err := s.engine.Get(format.SiteName(site))
	if err != nil {
		return store.Site{}, err
	}
	if len(v) != 8 {
		return store.Site{}, format.ErrBadRow
	}
	return s.SiteIn(s.engine.DB, format.SiteID{Slice: partition.Slice(binary.BigEndian.Uint64(v)), Site: site})
}

// PutSite writes the pace of st.Site in st.Slice. It is not synced: a crash of the machine (not of
// the process) may lose it. This is why an owner waits for the full delay after a restart (I7).
func (s *Queue) PutSite(st store.Site) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	if err := st.Check(); err != nil {
		return fmt.Errorf("store: site %s: %w", st.Site, err)
	}
	if err := s.engine.Ready(); err != nil {
		return err
	}
	defer s.engine.Lock([]partition.Slice{st.Slice})()
	if err := s.engine.Fenced(st.Slice); err != nil {
		return fmt.Errorf("store: site %s: %w", st.Site, err)
	}
	t := s.newBatch()
	defer t.Close()
	if err := t.Site(format.SiteID{Slice: st.Slice, Site: st.Site}, st); err != nil {
		return fmt.Errorf("store: site %s: %w", st.Site, err)
	}
	if err := t.Unsynced(); err != nil {
		return err
	}
	for sl, p := range t.Parts {
		t.Tell(sl, p)
	}
	return nil
}
