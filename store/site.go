package store

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
	"github.com/echo-node/echo-node/partition/strictjson"
)

// Caps of a Site's state.
const (
	MaxRobotsBytes = 500 << 10 // of a robots.txt, RFC 9309 section 2.5
	MaxOrigins     = 16        // robots.txt kept for a site
	maxSiteRow     = 2 * MaxOrigins * MaxRobotsBytes
	maxPaceRow     = 128 << 10 // of a pace without its robots.txt, as JSON
	maxStopped     = 1 << 10   // bytes of Site.Stopped
	maxSiteRobots  = 5 << 19   // bytes of a site's robots.txt together, so that it fits a message between peers
	MaxStops       = 64        // words in Site.Stops
	maxStopWord    = 64        // bytes of one
	MaxHints       = 64        // bytes of Site.Hints
)

// siteRow is a Site as it is kept: its robots.txt bodies, which are large and
// seldom change, are rows of their own and not written with every fetch.
type siteRow struct {
	Site
	Robots map[string]robotsHead // hides Site.Robots
}

type robotsHead struct {
	Status  int
	Fetched time.Time
	Expires time.Time
	Sum     []byte // SHA-256 of the body
}

// site writes the pace of id and where it is found by name.
func (t *txn) site(id siteID, st Site) error {
	st.Site, st.Slice = id.site, id.slice
	st.NextAllowed = st.NextAllowed.UTC() // the same bytes at every replica
	old, err := t.s.siteRow(t.s.db, id)
	if ignoreAbsent(err) != nil {
		return err
	}
	st.Robots = fewRobots(st.Robots)
	name := namePace
	row := siteRow{Site: st, Robots: make(map[string]robotsHead, len(st.Robots))}
	row.Site.Robots = nil
	for origin, r := range st.Robots {
		sum := sha256.Sum256(r.Body)
		row.Robots[origin] = robotsHead{Status: r.Status, Fetched: r.Fetched.UTC(), Expires: r.Expires.UTC(),
			Sum: sum[:]}
		if had, ok := old.Robots[origin]; ok && bytes.Equal(had.Sum, sum[:]) {
			continue
		}
		name = nameSite
		if err := t.b.Set(robotsKey(id, origin), t.s.packer.pack(r.Body), nil); err != nil {
			return err
		}
	}
	for origin := range old.Robots {
		if _, ok := st.Robots[origin]; !ok {
			_ = t.b.Delete(robotsKey(id, origin), nil)
		}
	}
	v, err := t.s.packer.packJSON(row)
	if err != nil {
		return err
	}
	return t.siteRow(id, v, name)
}

// fewRobots is robots without the oldest, when they are too many or too large
// together: those are fetched again.
func fewRobots(robots map[string]Robots) map[string]Robots {
	size := 0
	for _, r := range robots {
		size += len(r.Body)
	}
	for mine := false; len(robots) > MaxOrigins || size > maxSiteRobots; {
		if !mine {
			robots, mine = maps.Clone(robots), true
		}
		oldest := ""
		for origin, r := range robots {
			if old, ok := robots[oldest]; !ok || old.newer(r) || !r.newer(old) && origin < oldest {
				oldest = origin
			}
		}
		size -= len(robots[oldest].Body)
		delete(robots, oldest)
	}
	return robots
}

// siteRow writes the row of a pace, its robots.txt being there.
func (t *txn) siteRow(id siteID, value []byte, name byte) error {
	_ = t.b.Set(siteName(id.site), binary.BigEndian.AppendUint64(nil, uint64(id.slice)), nil)
	row := sitePrefix(tabSite, id)
	size := len(value)
	if name == nameSite {
		size = siteBytes
	}
	t.name(id.slice, name, row[9:], size, time.Time{})
	return t.b.Set(row, value, nil)
}

func (s *Store) siteRow(r pebble.Reader, id siteID) (siteRow, error) {
	v, err := get(r, sitePrefix(tabSite, id))
	if err != nil {
		return siteRow{}, err
	}
	return s.packer.decodeSiteRow(v)
}

func (p *packer) decodeSiteRow(v []byte) (row siteRow, err error) {
	b, err := p.unpack(v, maxSiteRow)
	if err == nil {
		err = strictjson.Unmarshal(b, &row)
	}
	return row, err
}

// siteIn puts a Site together again. Callers hold the lock of its slice, or
// bear with a robots.txt that is newer than the row.
func (s *Store) siteIn(r pebble.Reader, id siteID) (Site, error) {
	row, err := s.siteRow(r, id)
	if err != nil {
		return Site{}, err
	}
	st := row.Site
	for origin, h := range row.Robots {
		v, err := get(r, robotsKey(id, origin))
		if errors.Is(err, ErrNotExist) {
			continue // taken out since the row was read
		}
		if err != nil {
			return Site{}, err
		}
		body, err := s.packer.unpack(v, MaxRobotsBytes)
		if err != nil {
			return Site{}, fmt.Errorf("robots of %s: %w", origin, err)
		}
		if st.Robots == nil {
			st.Robots = make(map[string]Robots, len(row.Robots))
		}
		st.Robots[origin] = Robots{Body: body, Status: h.Status, Fetched: h.Fetched, Expires: h.Expires}
	}
	return st, nil
}

func parseSite(b []byte) (Site, error) {
	var st Site
	if err := strictjson.Unmarshal(b, &st); err != nil {
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
			errs = append(errs, fmt.Errorf("robots of %.100q: %d bytes, at most %d", origin, len(r.Body),
				MaxRobotsBytes))
		}
	}
	if st.Delay < 0 || st.BackOff < 0 || st.Fetched < 0 || st.Failures < 0 {
		errs = append(errs, errors.New("a negative delay, back-off or count"))
	}
	if len(st.Stopped) > maxStopped {
		errs = append(errs, fmt.Errorf("reason of %d bytes, at most %d", len(st.Stopped), maxStopped))
	}
	if len(st.Stops) > MaxStops {
		errs = append(errs, fmt.Errorf("%d reasons of stops, at most %d", len(st.Stops), MaxStops))
	}
	if len(st.Hints) > MaxHints {
		errs = append(errs, fmt.Errorf("%d bytes about hints, at most %d", len(st.Hints), MaxHints))
	}
	for why, n := range st.Stops {
		if len(why) > maxStopWord || n < 0 {
			errs = append(errs, fmt.Errorf("stop %.100q: %d", why, n))
		}
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
	return s.siteIn(s.db, siteID{slice: partition.Slice(binary.BigEndian.Uint64(v)), site: site})
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
	if err := s.fenced(st.Slice); err != nil {
		return fmt.Errorf("store: site %s: %w", st.Site, err)
	}
	t := s.newTxn()
	defer t.close()
	if err := t.site(siteID{st.Slice, st.Site}, st); err != nil {
		return fmt.Errorf("store: site %s: %w", st.Site, err)
	}
	if err := t.unsynced(); err != nil {
		return err
	}
	for sl, p := range t.parts {
		t.tell(sl, p)
	}
	return nil
}

// unsynced applies the batch without a sync: a crash of the machine may lose it,
// but never a part of it, nor one that a later synced batch rests on.
func (t *txn) unsynced() error {
	if err := t.finish(); err != nil {
		return err
	}
	if t.b.Empty() {
		return nil
	}
	if err := t.s.db.Apply(t.b, pebble.NoSync); err != nil {
		return err
	}
	t.visible()
	return nil
}
