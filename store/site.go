package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/echo-node/echo-node/partition"
)

// Caps of a Site's state.
const (
	MaxRobotsBytes = 500 << 10 // of a robots.txt, RFC 9309 section 2.5
	MaxOrigins     = 16        // robots.txt kept for a site
	maxSiteRow     = 2 * MaxOrigins * MaxRobotsBytes
	maxStopped     = 1 << 10 // bytes of Site.Stopped
)

// site writes the pace of id and where it is found by name.
func (t *txn) site(id siteID, st Site) error {
	st.Site, st.Slice = id.site, id.slice
	v, err := t.s.packer.encodeSite(st)
	if err != nil {
		return err
	}
	_ = t.b.Set(siteName(id.site), binary.BigEndian.AppendUint64(nil, uint64(id.slice)), nil)
	return t.b.Set(sitePrefix(tabSite, id), v, nil)
}

func (p *packer) encodeSite(st Site) ([]byte, error) {
	b, err := json.Marshal(st)
	if err != nil {
		return nil, fmt.Errorf("site: %w", err)
	}
	return p.pack(b), nil
}

func (p *packer) decodeSite(v []byte) (Site, error) {
	b, err := p.unpack(v, maxSiteRow)
	if err != nil {
		return Site{}, fmt.Errorf("site: %w", err)
	}
	return parseSite(b)
}

func parseSite(b []byte) (Site, error) {
	var st Site
	if err := json.Unmarshal(b, &st); err != nil {
		return Site{}, fmt.Errorf("site: %w: %w", errBadRow, err)
	}
	return st, nil
}

func (st Site) check() error {
	var errs []error
	if len(st.Site) > MaxSiteBytes {
		errs = append(errs, fmt.Errorf("site of %d bytes, at most %d", len(st.Site), MaxSiteBytes))
	}
	if len(st.Robots) > MaxOrigins {
		errs = append(errs, fmt.Errorf("robots of %d origins, at most %d", len(st.Robots), MaxOrigins))
	}
	for origin, r := range st.Robots {
		if len(r.Body) > MaxRobotsBytes || len(origin) > MaxSiteBytes {
			errs = append(errs, fmt.Errorf("robots of %.100q: %d bytes, at most %d", origin, len(r.Body), MaxRobotsBytes))
		}
	}
	if st.Delay < 0 || st.BackOff < 0 || st.Fetched < 0 || st.Failures < 0 {
		errs = append(errs, errors.New("a negative delay, back-off or count"))
	}
	if len(st.Stopped) > maxStopped {
		errs = append(errs, fmt.Errorf("reason of %d bytes, at most %d", len(st.Stopped), maxStopped))
	}
	return errors.Join(errs...)
}

// Site is the pace of a site; the zero Site and ErrNotExist when it has none.
// Where accounts of one service are spread over slices, each slice has its own
// row, to travel with it, and this is the one written last: the pace of a peer.
func (s *Store) Site(site partition.Site) (Site, error) {
	if err := s.enter(); err != nil {
		return Site{}, err
	}
	defer s.leave()
	st, err := s.siteByName(site)
	if err != nil {
		return Site{}, fmt.Errorf("store: site %s: %w", site, err)
	}
	return st, nil
}

func (s *Store) siteByName(site partition.Site) (Site, error) {
	v, err := s.get(siteName(site))
	if err != nil {
		return Site{}, err
	}
	if len(v) != 8 {
		return Site{}, errBadRow
	}
	return s.siteIn(siteID{slice: partition.Slice(binary.BigEndian.Uint64(v)), site: site})
}

func (s *Store) siteIn(id siteID) (Site, error) {
	v, err := s.get(sitePrefix(tabSite, id))
	if err != nil {
		return Site{}, err
	}
	return s.packer.decodeSite(v)
}

// PutSite writes the pace of st.Site in st.Slice. It is not synced: a crash of
// the machine (not of the process) may lose it, which is why a restarted owner
// waits out the delay anyhow (I7).
func (s *Store) PutSite(st Site) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := st.check(); err != nil {
		return fmt.Errorf("store: site %s: %w", st.Site, err)
	}
	if err := s.ready(); err != nil {
		return err
	}
	defer s.lock([]partition.Slice{st.Slice})()
	t := &txn{s: s, b: s.db.NewBatch()}
	defer t.close()
	if err := t.site(siteID{st.Slice, st.Site}, st); err != nil {
		return fmt.Errorf("store: site %s: %w", st.Site, err)
	}
	return s.applyBatch(t.b, false)
}
