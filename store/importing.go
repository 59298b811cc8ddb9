package store

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// ErrRow is wrapped by every refusal of a row that another peer sent.
var ErrRow = errors.New("store: refused row")

// Caps of one ImportRows, and of what is made for one.
const (
	// MaxLogChunkBytes is the most that one row has, key and value, and so the most
	// that ReadLog and SliceRows answer for any maxBytes up to it.
	MaxLogChunkBytes = MaxRecordBytes + 512<<10
	MaxImportRows    = 1 << 16
	MaxImportBytes   = 64 << 20 // of the rows as sent, and again of what they expand to
	// MaxAhead is by how much the time at which a row says that it was fetched or seen may
	// be ahead of this peer's clock: the later of two rows wins, so one of next year would
	// win for a year. Such a row is left out, whoever sends it, and the others are taken: a
	// sender whose clock is wrong stalls nothing. Repair brings the row when its time has come.
	MaxAhead = 5 * time.Minute
)

// errAhead is what is wrong with a row that is left out by MaxAhead.
var errAhead = errors.New("from the future")

// incoming is one validated row of another peer; one of the pointers is set, or sent.
type incoming struct {
	id      siteID
	key     partition.Key
	state   *keyState
	site    *Site
	pace    *siteRow // a pace without its robots.txt
	record  *Record
	body    []byte // of record and pace, as it came; of an item, as it would be written here
	link    *OutboxRow
	sent    bool       // the link is in the outbox no more, the capture or the attempts gone
	capture *captureID // its row is body
	sum     bodySum
	kept    *keptBody
	place   *Placement
	item    *itemID // its state is body
}

// ImportRows merges rows of sl that another peer's SliceRows made, or its ReadLog
// behind them without the links that were sent (Row.Sent), as one batch, synced:
// the newer fetch wins for each Key, a Key known stays known, a site may next be
// asked at the later of both times, a link is queued once, of a Key's captures
// the newest stay. Importing rows again, or in another order, changes nothing
// more; but a capture that is gone comes back with an older page.
//
// Every row is validated as if from an enemy: ErrRow, and nothing is written,
// when one is of another slice, not canonical, over a cap, or not understood.
// Rows of more than MaxAhead in the future are left out (Options.Ahead).
func (s *Store) ImportRows(sl partition.Slice, rows []Row) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	v := s.newValidator(time.Now(), false)
	in, _, err := v.rows(sl, rows)
	if err != nil {
		return fmt.Errorf("store: import into %s: %w", sl, err)
	}
	v.tellAhead(sl)
	err = s.write([]partition.Slice{sl}, func(t *txn) error {
		m := newMerger(t, false)
		if err := m.merge(in); err != nil {
			return err
		}
		return m.end()
	})
	if err != nil {
		return fmt.Errorf("store: import into %s: %w", sl, err)
	}
	return nil
}

// validator is the gate for rows of other peers. Its caps are those of one
// call, whose rows may come in several pieces.
type validator struct {
	s        *Store
	now      time.Time
	limit    time.Time     // of a fetch
	left     int           // rows above it
	ahead    time.Duration // by how much the latest of these is ahead of now
	count    int           // rows there may still be
	bytes    int           // as they came
	expanded int           // of what is packed
	log      bool          // the rows are a log's: sent links are known
}

func (s *Store) newValidator(now time.Time, log bool) *validator {
	return &validator{s: s, now: now, limit: now.Add(MaxAhead), count: MaxImportRows, bytes: MaxImportBytes,
		expanded: MaxImportBytes, log: log}
}

// timely refuses a row that says that it is of at when that is to come.
func (v *validator) timely(at time.Time) error {
	if !at.After(v.limit) {
		return nil
	}
	v.ahead = max(v.ahead, at.Sub(v.now))
	return fmt.Errorf("%w: %s", errAhead, at)
}

// tellAhead reports the rows that were left out.
func (v *validator) tellAhead(sl partition.Slice) {
	if v.left > 0 && v.s.opts.Ahead != nil {
		v.s.opts.Ahead(sl, v.left, v.ahead)
	}
	v.left, v.ahead = 0, 0
}

// rows decodes rows; kept are those that were not left out, in the order of the decoded.
func (v *validator) rows(sl partition.Slice, rows []Row) (in []incoming, kept []Row, err error) {
	if v.count -= len(rows); v.count < 0 {
		return nil, nil, fmt.Errorf("%w: %d rows too many, at most %d", ErrRow, -v.count, MaxImportRows)
	}
	for _, r := range rows {
		v.bytes -= len(r.Key) + len(r.Value)
	}
	if v.bytes < 0 {
		return nil, nil, fmt.Errorf("%w: %d bytes too many, at most %d", ErrRow, -v.bytes, MaxImportBytes)
	}
	in, kept = make([]incoming, 0, len(rows)), rows
	for at, r := range rows {
		i, err := v.row(sl, r)
		if errors.Is(err, errAhead) {
			if v.left++; len(kept) == len(rows) {
				kept = slices.Clone(rows[:at])
			}
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %.80q: %w", ErrRow, r.Key, err)
		}
		if in = append(in, i); len(kept) < len(in) {
			kept = append(kept, r)
		}
	}
	return in, kept, nil
}

// unpack expands a value at the cost of what is left for it.
func (v *validator) unpack(value []byte, limit int) ([]byte, error) {
	b, err := v.s.packer.unpack(value, min(v.expanded, limit))
	v.expanded -= len(b)
	return b, err
}

// row decodes one row. What it answers may share the row's memory.
func (v *validator) row(sl partition.Slice, r Row) (i incoming, err error) {
	if len(r.Key) == 0 {
		return i, errBadRow
	}
	i.id.slice = sl
	rest := r.Key[1:]
	if r.Key[0] == nameUnit {
		i.place, err = v.s.incomingPlacement(sl, partition.Unit(rest), r.Value)
		return i, err
	}
	if r.Key[0] != nameLink {
		site, key, ok := cutSite(rest)
		if !ok {
			return i, errBadRow
		}
		i.id.site, rest = site, key
		switch {
		case r.Key[0] == nameSite:
			return i, v.site(&i, rest, r.Value)
		case r.Key[0] == namePace:
			return i, v.pace(&i, rest, r.Value)
		case r.Key[0] == nameCapture:
			return i, v.capture(&i, rest, r.Value)
		case isItem(table(r.Key[0])):
			return i, v.item(&i, table(r.Key[0]), rest, r.Value)
		}
	}
	if i.key, err = partition.KeyFromWire(string(rest)); err != nil {
		return i, err
	}
	switch r.Key[0] {
	case nameKey:
		err = v.state(&i, r.Value)
	case nameRecord:
		err = v.record(&i, r.Value)
	case nameLink:
		if i.sent = v.log && len(r.Value) == 0; !i.sent {
			err = v.link(&i, r.Value)
		}
	default:
		err = fmt.Errorf("table %q is not handed over", r.Key[:1])
	}
	return i, err
}

// home refuses a Key that is not of the slice and site its row is in.
func (v *validator) home(i *incoming) error {
	if i.key.Site() != i.id.site || !v.s.charter.MayHold(i.id.slice, i.key) {
		id := v.s.idOf(i.key)
		return fmt.Errorf("the key is of %s in %s", id.site, id.slice)
	}
	return checkKey(i.key, i.id.site)
}

func (v *validator) state(i *incoming, value []byte) error {
	k, err := decodeKeyState(value)
	if err != nil {
		return err
	}
	if err := v.timely(k.fetched); err != nil {
		return err
	}
	if k.state == StatePending && k.at.IsZero() {
		return errors.New("pending, but never due")
	}
	i.state = &k
	return v.home(i)
}

// record keeps the value as it came: it expands to a Record within the caps,
// so it is one of ours as good as one made anew.
func (v *validator) record(i *incoming, value []byte) error {
	b, err := v.unpack(value, oldRecordBytes)
	if err != nil {
		return err
	}
	r, err := parseRecord(b)
	if err != nil {
		return err
	}
	if r.Key != i.key {
		return fmt.Errorf("the record is of %.80q", r.Key)
	}
	if err := v.timely(r.FetchedAt); err != nil {
		return err
	}
	i.record, i.body = &r, value
	return v.home(i)
}

func (v *validator) site(i *incoming, rest, value []byte) error {
	b, err := v.unpack(value, maxSiteRow)
	if err != nil {
		return err
	}
	st, err := parseSite(b)
	if err != nil {
		return err
	}
	for _, r := range st.Robots {
		if err := v.timely(r.Fetched); err != nil {
			return err
		}
	}
	i.site = &st
	return i.pacedBy(st, rest)
}

func (v *validator) pace(i *incoming, rest, value []byte) error {
	b, err := v.unpack(value, maxPaceRow)
	if err != nil {
		return err
	}
	i.pace, i.body = &siteRow{}, value
	if err := json.Unmarshal(b, i.pace); err != nil {
		return fmt.Errorf("site: %w: %w", errBadRow, err)
	}
	if len(i.pace.Robots) > MaxOrigins {
		return fmt.Errorf("robots of %d origins, at most %d", len(i.pace.Robots), MaxOrigins)
	}
	for origin, h := range i.pace.Robots {
		if err := v.timely(h.Fetched); err != nil {
			return err
		}
		if len(origin) > MaxSiteBytes || len(h.Sum) != sha256.Size {
			return fmt.Errorf("robots of %.100q: a sum of %d bytes", origin, len(h.Sum))
		}
	}
	return i.pacedBy(i.pace.Site, rest)
}

// pacedBy refuses a state that is not of the site its row is in.
func (i *incoming) pacedBy(st Site, rest []byte) error {
	if len(rest) != 0 || st.Site != i.id.site || st.Slice != i.id.slice || st.Site == "" {
		return fmt.Errorf("the state is of %.80q in %s", st.Site, st.Slice)
	}
	return st.check()
}

func (v *validator) link(i *incoming, value []byte) error {
	r, err := decodeOutboxRow(value)
	if err != nil {
		return err
	}
	if r.Key != i.key || r.Slice != i.id.slice || !v.s.charter.MayHold(r.To, r.Key) {
		return fmt.Errorf("the link is of %.80q, from %s to %s", r.Key, r.Slice, r.To)
	}
	i.link = &r
	return r.check(i.key.Site())
}
