package replog

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/archive"
	"github.com/echo-node/echo-node/store/format"
)

// errAhead is the error of a row that is left out because of MaxAhead.
var errAhead = errors.New("from the future")

// incoming is one validated row of another peer. One of the pointers is set, or sent is true.
type incoming struct {
	id      format.SiteID
	key     partition.Key
	state   *format.KeyState
	site    *store.Site
	pace    *format.SiteRow // a pace without its robots.txt
	record  *store.Record
	body    []byte // of a record or pace: as it came; of an item: as it would be written here
	link    *store.OutboxRow
	sent    bool              // the link was sent, or the capture or the attempts are gone
	capture *format.CaptureID // its row is body
	sum     format.BodySum
	kept    *archive.KeptBody
	place   *store.Placement
	item    *format.ItemID // its state is body
}

// ImportRows merges rows of sl that another peer's SliceRows made, as one batch, synced. It also
// takes rows of ReadLog, without the links that were sent (Row.Sent). For each Key, the newer fetch
// wins, and a known Key stays known. A site's next request is at the later of both times. A link is
// queued once. Of a Key's captures, the newest stay. Importing rows again, or in another order,
// changes nothing more. There is one exception: a deleted capture comes back with an older page.
//
// Every row is validated as if an enemy had sent it. When a row is of another slice, not canonical,
// over a cap, or not valid, ImportRows returns ErrRow and writes nothing. Rows more than MaxAhead
// in the future are left out (Options.Ahead).
func (s *Log) ImportRows(sl partition.Slice, rows []store.Row) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	v := s.NewValidator(time.Now(), false)
	in, _, err := v.Rows(sl, rows)
	if err != nil {
		return fmt.Errorf("store: import into %s: %w", sl, err)
	}
	v.tellAhead(sl)
	err = s.write([]partition.Slice{sl}, func(t *batch) error {
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

// validator validates rows of other peers. Its caps are for one call, whose rows may come in
// several chunks.
type validator struct {
	s        *Log
	now      time.Time
	limit    time.Time     // the latest time of a fetch
	left     int           // the number of rows later than limit
	ahead    time.Duration // how far the latest of these is ahead of now
	count    int           // how many more rows are allowed
	bytes    int           // how many more bytes are allowed, as they came
	expanded int           // how many more bytes of expanded values are allowed
	log      bool          // the rows come from a log, so sent links are valid
}

// NewValidator returns a validator for the rows of one call.
func (s *Log) NewValidator(now time.Time, log bool) *validator {
	return &validator{s: s, now: now, limit: now.Add(store.MaxAhead), count: store.MaxImportRows,
		bytes:    store.MaxImportBytes,
		expanded: store.MaxImportBytes, log: log}
}

// timely returns errAhead when at is more than MaxAhead in the future.
func (v *validator) timely(at time.Time) error {
	if !at.After(v.limit) {
		return nil
	}
	v.ahead = max(v.ahead, at.Sub(v.now))
	return fmt.Errorf("%w: %s", errAhead, at)
}

// tellAhead reports the rows that were left out.
func (v *validator) tellAhead(sl partition.Slice) {
	if v.left > 0 && v.s.engine.Options.Ahead != nil {
		v.s.engine.Options.Ahead(sl, v.left, v.ahead)
	}
	v.left, v.ahead = 0, 0
}

// Rows decodes rows. kept are the rows that were not left out, in the same order as in.
func (v *validator) Rows(sl partition.Slice, rows []store.Row) (in []incoming, kept []store.Row, err error) {
	if v.count -= len(rows); v.count < 0 {
		return nil, nil, fmt.Errorf("%w: %d rows too many, at most %d", store.ErrRow, -v.count, store.MaxImportRows)
	}
	for _, r := range rows {
		v.bytes -= len(r.Key) + len(r.Value)
	}
	if v.bytes < 0 {
		return nil, nil, fmt.Errorf("%w: %d bytes too many, at most %d", store.ErrRow, -v.bytes, store.MaxImportBytes)
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
			return nil, nil, fmt.Errorf("%w: %.80q: %w", store.ErrRow, r.Key, err)
		}
		if in = append(in, i); len(kept) < len(in) {
			kept = append(kept, r)
		}
	}
	return in, kept, nil
}

// unpack expands a value and subtracts its size from what may still be expanded.
func (v *validator) unpack(value []byte, limit int) ([]byte, error) {
	b, err := v.s.engine.Packer.Unpack(value, min(v.expanded, limit))
	v.expanded -= len(b)
	return b, err
}

// row decodes one row. The result may share memory with the row.
func (v *validator) row(sl partition.Slice, r store.Row) (i incoming, err error) {
	if len(r.Key) == 0 {
		return i, format.ErrBadRow
	}
	i.id.Slice = sl
	rest := r.Key[1:]
	if r.Key[0] == format.NameUnit {
		i.place, err = v.s.incomingPlacement(sl, partition.Unit(rest), r.Value)
		return i, err
	}
	if r.Key[0] != format.NameLink {
		site, key, ok := format.CutSite(rest)
		if !ok {
			return i, format.ErrBadRow
		}
		i.id.Site, rest = site, key
		switch {
		case r.Key[0] == format.NameSite:
			return i, v.site(&i, rest, r.Value)
		case r.Key[0] == format.NamePace:
			return i, v.pace(&i, rest, r.Value)
		case r.Key[0] == format.NameCapture:
			return i, v.capture(&i, rest, r.Value)
		case format.IsItem(format.Table(r.Key[0])):
			return i, v.item(&i, format.Table(r.Key[0]), rest, r.Value)
		}
	}
	if i.key, err = partition.KeyFromWire(string(rest)); err != nil {
		return i, err
	}
	switch r.Key[0] {
	case format.NameKey:
		err = v.state(&i, r.Value)
	case format.NameRecord:
		err = v.record(&i, r.Value)
	case format.NameLink:
		if i.sent = v.log && len(r.Value) == 0; !i.sent {
			err = v.link(&i, r.Value)
		}
	default:
		err = fmt.Errorf("table %q is not handed over", r.Key[:1])
	}
	return i, err
}

// home refuses a Key that does not belong to the slice and site of its row.
func (v *validator) home(i *incoming) error {
	if i.key.Site() != i.id.Site || !v.s.engine.Charter().MayHold(i.id.Slice, i.key) {
		id := v.s.engine.IDOf(i.key)
		return fmt.Errorf("the key is of %s in %s", id.Site, id.Slice)
	}
	return store.CheckKey(i.key, i.id.Site)
}

func (v *validator) state(i *incoming, value []byte) error {
	k, err := format.DecodeKeyState(value)
	if err != nil {
		return err
	}
	if err := v.timely(k.Fetched); err != nil {
		return err
	}
	if k.State == store.StatePending && k.At.IsZero() {
		return errors.New("pending, but never due")
	}
	i.state = &k
	return v.home(i)
}

// record keeps the value as it came. The value expands to a Record within the caps, so it is as
// good as one that this peer encodes.
func (v *validator) record(i *incoming, value []byte) error {
	b, err := v.unpack(value, store.OldRecordBytes)
	if err != nil {
		return err
	}
	r, err := format.ParseRecord(b)
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
	b, err := v.unpack(value, store.MaxSiteRow)
	if err != nil {
		return err
	}
	st, err := format.ParseSite(b)
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
	b, err := v.unpack(value, store.MaxPaceRow)
	if err != nil {
		return err
	}
	i.pace, i.body = &format.SiteRow{}, value
	if err := json.Unmarshal(b, i.pace); err != nil {
		return fmt.Errorf("site: %w: %w", format.ErrBadRow, err)
	}
	if len(i.pace.Robots) > store.MaxOrigins {
		return fmt.Errorf("robots of %d origins, at most %d", len(i.pace.Robots), store.MaxOrigins)
	}
	for origin, h := range i.pace.Robots {
		if err := v.timely(h.Fetched); err != nil {
			return err
		}
		if len(origin) > store.MaxSiteBytes || len(h.Sum) != sha256.Size {
			return fmt.Errorf("robots of %.100q: a sum of %d bytes", origin, len(h.Sum))
		}
	}
	return i.pacedBy(i.pace.Site, rest)
}

// pacedBy refuses a state that is not of the site of its row.
func (i *incoming) pacedBy(st store.Site, rest []byte) error {
	if len(rest) != 0 || st.Site != i.id.Site || st.Slice != i.id.Slice || st.Site == "" {
		return fmt.Errorf("the state is of %.80q in %s", st.Site, st.Slice)
	}
	return st.Check()
}

func (v *validator) link(i *incoming, value []byte) error {
	r, err := format.DecodeOutboxRow(value)
	if err != nil {
		return err
	}
	if r.Key != i.key || r.Slice != i.id.Slice || !v.s.engine.Charter().MayHold(r.To, r.Key) {
		return fmt.Errorf("the link is of %.80q, from %s to %s", r.Key, r.Slice, r.To)
	}
	i.link = &r
	return r.Check(i.key.Site())
}
