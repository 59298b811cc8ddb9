package store

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// ErrRow is wrapped by every refusal of a row that another peer sent.
var ErrRow = errors.New("store: refused row")

// Caps of one ImportRows.
const (
	MaxImportRows  = 1 << 16
	MaxImportBytes = 64 << 20       // of the rows as sent, and again of what they expand to
	maxAhead       = 24 * time.Hour // a fetch in the future would win for ever
)

// incoming is one validated row of another peer; one of the four is set.
type incoming struct {
	id     siteID
	key    partition.Key
	state  *keyState
	site   *Site
	record *Record
	body   []byte // of record
	link   *OutboxRow
}

// ImportRows merges rows of sl that another peer's SliceRows made, as one
// batch, synced: the newer fetch wins for each Key, a Key known stays known, a
// site may next be asked at the later of both times, a link is queued once.
// Importing rows again, or in another order, changes nothing more.
//
// Every row is validated as if from an enemy: ErrRow, and nothing is written,
// when one is of another slice, not canonical, over a cap, or not understood.
func (s *Store) ImportRows(sl partition.Slice, rows []Row) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	in, err := s.validate(sl, rows)
	if err != nil {
		return fmt.Errorf("store: import into %s: %w", sl, err)
	}
	err = s.write([]partition.Slice{sl}, func(t *txn) error { return t.merge(in) })
	if err != nil {
		return fmt.Errorf("store: import into %s: %w", sl, err)
	}
	return nil
}

func (s *Store) validate(sl partition.Slice, rows []Row) ([]incoming, error) {
	if len(rows) > MaxImportRows {
		return nil, fmt.Errorf("%w: %d rows, at most %d", ErrRow, len(rows), MaxImportRows)
	}
	left := MaxImportBytes
	for _, r := range rows {
		left -= len(r.Key) + len(r.Value)
	}
	if left < 0 {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrRow, MaxImportBytes-left, MaxImportBytes)
	}
	budget := MaxImportBytes
	limit := time.Now().Add(maxAhead)
	in := make([]incoming, 0, len(rows))
	for _, r := range rows {
		i, used, err := s.incoming(sl, r, budget, limit)
		if err != nil {
			return nil, fmt.Errorf("%w: %.80q: %w", ErrRow, r.Key, err)
		}
		budget -= used
		in = append(in, i)
	}
	return in, nil
}

// incoming decodes one row; used is how many bytes its value expanded to.
func (s *Store) incoming(sl partition.Slice, r Row, budget int, limit time.Time) (i incoming, used int, err error) {
	if len(r.Key) == 0 {
		return i, 0, errBadRow
	}
	i.id.slice = sl
	rest := r.Key[1:]
	if t := table(r.Key[0]); t != tabQueued {
		site, key, ok := cutSite(rest)
		if !ok {
			return i, 0, errBadRow
		}
		i.id.site, rest = site, key
		if t == tabSite {
			return s.incomingSite(i, rest, r.Value, budget)
		}
	}
	if i.key, err = partition.KeyFromWire(string(rest)); err != nil {
		return i, 0, err
	}
	switch table(r.Key[0]) {
	case tabKey:
		err = s.incomingState(&i, r.Value, limit)
	case tabRecord:
		used, err = s.incomingRecord(&i, r.Value, budget, limit)
	case tabQueued:
		err = s.incomingLink(&i, r.Value)
	default:
		err = fmt.Errorf("table %q is not handed over", r.Key[:1])
	}
	return i, used, err
}

// home refuses a Key that is not of the slice and site its row is in.
func (s *Store) home(i *incoming) error {
	if id := s.idOf(i.key); id != i.id {
		return fmt.Errorf("the key is of %s in %s", id.site, id.slice)
	}
	return checkKey(i.key, i.id.site)
}

func (s *Store) incomingState(i *incoming, value []byte, limit time.Time) error {
	k, err := decodeKeyState(value)
	if err != nil {
		return err
	}
	if k.fetched.After(limit) {
		return fmt.Errorf("fetched in the future, %s", k.fetched)
	}
	if k.state == StatePending && k.at.IsZero() {
		return errors.New("pending, but never due")
	}
	i.state = &k
	return s.home(i)
}

func (s *Store) incomingRecord(i *incoming, value []byte, budget int, limit time.Time) (int, error) {
	b, err := s.packer.unpack(value, min(budget, MaxRecordBytes))
	if err != nil {
		return 0, err
	}
	r, err := parseRecord(b)
	if err != nil {
		return 0, err
	}
	if r.Key != i.key {
		return 0, fmt.Errorf("the record is of %.80q", r.Key)
	}
	if r.FetchedAt.After(limit) {
		return 0, fmt.Errorf("fetched in the future, %s", r.FetchedAt)
	}
	i.record = &r
	if i.body, err = s.packer.encodeRecord(&r); err != nil { // ours, whatever else theirs held
		return 0, err
	}
	return len(b), s.home(i)
}

func (s *Store) incomingSite(i incoming, rest, value []byte, budget int) (incoming, int, error) {
	b, err := s.packer.unpack(value, min(budget, maxSiteRow))
	if err != nil {
		return i, 0, err
	}
	st, err := parseSite(b)
	if err != nil {
		return i, 0, err
	}
	if len(rest) != 0 || st.Site != i.id.site || st.Slice != i.id.slice || st.Site == "" {
		return i, 0, fmt.Errorf("the state is of %.80q in %s", st.Site, st.Slice)
	}
	i.site = &st
	return i, len(b), st.check()
}

func (s *Store) incomingLink(i *incoming, value []byte) error {
	r, err := decodeOutboxRow(value)
	if err != nil {
		return err
	}
	to := s.idOf(i.key)
	if r.Key != i.key || r.Slice != i.id.slice || r.To != to.slice {
		return fmt.Errorf("the link is of %.80q, from %s to %s", r.Key, r.Slice, r.To)
	}
	i.link = &r
	return r.check(to.site)
}

// merge applies validated rows. It runs under the lock of their slice; a Key
// may come twice, so what this batch writes is remembered.
func (t *txn) merge(in []incoming) error {
	m := merger{t: t, states: make(map[partition.Key]keyState), records: make(map[partition.Key]Record),
		sites: make(map[siteID]Site), links: make(map[partition.Key]bool)}
	for _, i := range in {
		var err error
		switch {
		case i.state != nil:
			err = m.state(i.id, i.key, *i.state)
		case i.record != nil:
			err = m.record(i)
		case i.site != nil:
			err = m.site(i.id, *i.site)
		case i.link != nil && !m.links[i.key]:
			m.links[i.key] = true
			err = t.queue(*i.link)
		}
		if err != nil {
			return err
		}
	}
	return m.end()
}

type merger struct {
	t       *txn
	states  map[partition.Key]keyState
	records map[partition.Key]Record
	sites   map[siteID]Site
	links   map[partition.Key]bool
}

func (m *merger) stateOf(id siteID, k partition.Key) (*keyState, error) {
	if old, ok := m.states[k]; ok {
		return &old, nil
	}
	old, err := m.t.keyState(id, k)
	if errors.Is(err, ErrNotExist) {
		return nil, nil
	}
	return &old, err
}

// state keeps the newer fetch; of two of the same moment the greater row, so
// that the order of imports does not matter.
func (m *merger) state(id siteID, k partition.Key, now keyState) error {
	old, err := m.stateOf(id, k)
	if err != nil {
		return err
	}
	if old == nil {
		if now.seq, err = m.t.seq(); err != nil {
			return err
		}
	} else {
		now.seq = old.seq
		if c := now.fetched.Compare(old.fetched); c < 0 || c == 0 && bytes.Compare(now.encode(), old.encode()) <= 0 {
			return nil
		}
	}
	m.states[k] = now
	return m.t.put(id, k, old, now)
}

// record keeps the newer fetch. The Key of a record that came without its
// state is put down as due: at worst it is fetched once more.
func (m *merger) record(i incoming) error {
	st, err := m.stateOf(i.id, i.key)
	if err != nil {
		return err
	}
	if st == nil {
		at := i.record.FetchedAt.UTC()
		if err := m.state(i.id, i.key, keyState{state: StatePending, at: at, admitted: at}); err != nil {
			return err
		}
	}
	old, ok := m.records[i.key]
	if !ok {
		v, err := m.t.s.get(keyRow(tabRecord, i.id, i.key))
		if err == nil {
			old, err = m.t.s.packer.decodeRecord(v)
			ok = err == nil
		}
		if ignoreAbsent(err) != nil {
			return err
		}
	}
	if ok {
		c := i.record.FetchedAt.Compare(old.FetchedAt)
		if c < 0 || c == 0 && i.record.Digest <= old.Digest {
			return nil
		}
	}
	_, again := m.records[i.key]
	m.records[i.key] = *i.record
	if again { // counted and logged already
		return m.t.b.Set(keyRow(tabRecord, i.id, i.key), i.body, nil)
	}
	return m.t.record(i.id, i.key, i.body)
}

// site unites two views of one site's pace (I7): never sooner than either says.
// The rows are written once, by end.
func (m *merger) site(id siteID, now Site) error {
	old, ok := m.sites[id]
	if !ok {
		var err error
		old, err = m.t.s.siteIn(id)
		if ignoreAbsent(err) != nil {
			return err
		}
		ok = err == nil
	}
	if ok {
		now = uniteSites(old, now)
	}
	m.sites[id] = now
	return nil
}

func (m *merger) end() error {
	for id, st := range m.sites {
		if err := m.t.site(id, st); err != nil {
			return err
		}
	}
	return nil
}

// uniteSites takes the account of whoever asked last, the later time, and of
// each origin the newer robots.txt.
func uniteSites(a, b Site) Site {
	out := a
	if c := b.NextAllowed.Compare(a.NextAllowed); c > 0 || c == 0 && b.Fetched > a.Fetched {
		out = b
	}
	out.Delay = max(a.Delay, b.Delay)
	out.BackOff = max(a.BackOff, b.BackOff)
	out.Fetched = max(a.Fetched, b.Fetched)
	robots := make(map[string]Robots, len(a.Robots)+len(b.Robots))
	for origin, r := range a.Robots {
		robots[origin] = r
	}
	for origin, r := range b.Robots {
		if old, ok := robots[origin]; ok && !r.Fetched.After(old.Fetched) || !ok && len(robots) >= MaxOrigins {
			continue
		}
		robots[origin] = r
	}
	if out.Robots = robots; len(robots) == 0 {
		out.Robots = nil
	}
	return out
}
