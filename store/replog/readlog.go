package replog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// ReadLog returns the chunk of sl's log above the position after, for a peer's ApplyLog. It
// contains as many batches as fit into maxBytes, at least one. When no batch is above after, To is
// after, and this position is durable. A snapshot (SliceRows) that begins later may be followed by
// ResetLog to this position. ErrTrimmed means that the log does not reach back to after, or that
// one batch is larger than MaxLogChunkBytes. ErrGap means that after is above the head.
//
// A chunk is read at one moment, and all of it is durable: what a crash of this store could lose is
// not replicated. A row is in a chunk once, as it is now, however many batches wrote it. There is
// one exception. If a Key was fetched again after To, its state is replicated as it was when the
// Key was admitted. The reason is that the links of that fetch come only with a later chunk. So a
// peer that has one chunk and not the next has every Key and record of its batches. It also has
// every link, or the page is due (I3).
func (s *Log) ReadLog(sl partition.Slice, after uint64, maxBytes int) (store.LogChunk, error) {
	r, err := s.LogReader(sl)
	if err != nil {
		return store.LogChunk{}, err
	}
	p, err := r.Read(sl, after, maxBytes)
	return p, errors.Join(err, r.Close())
}

// LogReader reads the logs of several slices at one moment, and waits for the disk once for all of
// them. The caller must call Close; Close of the store waits for it. It is not safe for concurrent
// use.
type LogReader struct {
	s      *Log
	known  map[partition.Slice]engine.SliceLog // the logs' states before snap
	snap   *pebble.Snapshot                    // nil until there is something to read
	synced bool                                // what snap sees is durable
}

// LogReader returns a reader for the logs of sls.
func (s *Log) LogReader(sls ...partition.Slice) (*LogReader, error) {
	if err := s.engine.Enter(); err != nil {
		return nil, err
	}
	r := &LogReader{s: s, known: make(map[partition.Slice]engine.SliceLog, len(sls))}
	for _, sl := range sls {
		r.known[sl] = s.engine.Logs.Get(sl)
	}
	return r, nil
}

// Close releases the snapshot.
func (r *LogReader) Close() error {
	defer r.s.engine.Leave()
	if r.snap == nil {
		return nil
	}
	return r.snap.Close()
}

// Read is ReadLog for one of the reader's slices. It sees the log as it was when the reader was
// made, or later.
func (r *LogReader) Read(sl partition.Slice, after uint64, maxBytes int) (store.LogChunk, error) {
	p, err := r.read(sl, after, maxBytes)
	if err != nil {
		return store.LogChunk{}, fmt.Errorf("store: log of %s above %d: %w", sl, after, err)
	}
	return p, nil
}

func (r *LogReader) read(sl partition.Slice, from uint64, maxBytes int) (p store.LogChunk, err error) {
	known, ok := r.known[sl]
	if !ok {
		return p, errors.New("not of this reader")
	}
	if known.Last.Pos == from && known.Durable >= from { // most slices, most of the time
		return store.LogChunk{Slice: sl, From: from, To: from}, nil
	}
	if r.snap == nil {
		r.snap = r.s.engine.DB.NewSnapshot()
	}
	s, snap := r.s, r.snap
	p = store.LogChunk{Slice: sl, From: from, To: from}
	if !r.synced || known.Last.Pos <= from { // else there is more, and it is durable
		head, err := s.lastEntry(snap, sl)
		if err != nil {
			return p, err
		}
		if head.Pos < from {
			return p, fmt.Errorf("%w: the head is %d", store.ErrGap, head.Pos)
		}
		if now := s.engine.Logs.Get(sl); !r.synced && (now.Cuts != known.Cuts || now.Durable < head.Pos) {
			if err := s.engine.Barrier(); err != nil {
				return p, err
			}
			r.synced = true
		}
		if head.Pos == from {
			return p, nil
		}
	}
	b := chunking{s: s, snap: snap, slice: sl, rows: make(map[chunkName]*chunkRow)}
	prefix := format.SlicePrefix(format.TabSlice, sl)
	err = engine.Scan(snap, format.LogKey(sl, from+1), format.After(prefix), func(key, value []byte) (bool, error) {
		e, err := format.DecodeEntry(key, value)
		if err != nil {
			return false, err
		}
		if e.Base() > p.To {
			return false, fmt.Errorf("%w: it begins after %d", store.ErrTrimmed, e.Base())
		}
		fits, err := b.add(e, maxBytes)
		if err == nil && !fits && p.To == p.From {
			err = fmt.Errorf("%w: the batch at %d is too large", store.ErrTrimmed, e.Pos)
		}
		if fits {
			p.To = e.Pos
		}
		return fits, err
	})
	if err == nil {
		p.Rows, err = b.finish()
	}
	if r.synced {
		s.engine.Logs.Synced(sl, p.To, known.Cuts)
	}
	return p, err
}

// lastEntry returns the head of the newest entry that r sees; Pos is 0 when there is none.
func (s *Log) lastEntry(r pebble.Reader, sl partition.Slice) (h format.EntryHead, err error) {
	p := format.SlicePrefix(format.TabSlice, sl)
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: p, UpperBound: format.After(p)})
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.Last() {
		return h, it.Error()
	}
	v, err := it.ValueAndErr()
	if err == nil {
		h, _, err = format.DecodeHead(it.Key(), v)
	}
	return h, err
}

// chunking is a log chunk while it is built.
type chunking struct {
	s              *Log
	snap           *pebble.Snapshot
	slice          partition.Slice
	rows           map[chunkName]*chunkRow
	size, expanded int
}

// chunkName identifies a row. The two names of a pace count as one.
type chunkName struct {
	name byte
	rest string
}

type chunkRow struct {
	format.LogRow
	value []byte
	state format.KeyState // of a Key
}

// add adds the rows of e. It returns false when they are too many for this chunk. maxBytes counts
// only when a batch is in the chunk already, MaxLogChunkBytes always.
func (b *chunking) add(e format.LogEntry, maxBytes int) (fits bool, err error) {
	limit := store.MaxLogChunkBytes
	if len(b.rows) > 0 {
		limit = min(limit, maxBytes)
	}
	size, expanded := b.size, b.expanded
	fresh := make(map[chunkName]*chunkRow, len(e.Rows))
	for _, r := range e.Rows {
		n := chunkName{r.Name, r.Rest}
		if r.Name == format.NamePace {
			n.name = format.NameSite
		}
		had := b.rows[n]
		if had == nil {
			had = fresh[n]
		}
		if had != nil && (r.Name != format.NameSite || had.Name == format.NameSite) {
			continue
		}
		row := &chunkRow{LogRow: r}
		if err := b.read(row); err != nil {
			return false, fmt.Errorf("row %c %q of the batch at %d: %w", r.Name, r.Rest, e.Pos, err)
		}
		if row.value == nil && (r.Name == format.NameRecord || format.IsItem(format.Table(r.Name)) &&
			format.Table(r.Name) != format.TabAttempt) {
			// Its Key was placed or withdrawn since, or newer ones exist. A replica finds this too.
			continue
		}
		fresh[n] = row
		size += 1 + len(r.Rest) + len(row.value)
		expanded += format.ExpandsTo(row.value, r.Name)
		if size > limit || expanded > store.MaxImportBytes || len(b.rows)+len(fresh) > store.MaxImportRows {
			return false, nil
		}
	}
	for n, row := range fresh {
		b.rows[n] = row
	}
	for _, r := range e.Rows { // when several batches wrote a Key, the last one counts
		if had := b.rows[chunkName{r.Name, r.Rest}]; r.Name == format.NameKey && had.Fetched.Before(r.Fetched) {
			had.Fetched = r.Fetched
		}
	}
	b.size, b.expanded = size, expanded
	return true, nil
}

// read reads the value of a row. The value is nil for a link that was sent and for a capture,
// record or item that is gone.
func (b *chunking) read(row *chunkRow) (err error) {
	t := format.Table(row.Name)
	if row.Name == format.NamePace {
		t = format.TabSite
	}
	key := append(format.SlicePrefix(t, b.slice), row.Rest...)
	if row.value, err = engine.Get(b.snap, key); err != nil {
		gone := row.Name == format.NameLink || row.Name == format.NameCapture || format.IsItem(t) ||
			row.Name == format.NameRecord &&
				(b.s.engine.Charter().Mode == partition.ModeGeo || format.OfFile([]byte(row.Rest)))
		if gone && errors.Is(err, store.ErrNotExist) {
			row.value, err = nil, nil
		}
		return err
	}
	switch row.Name {
	case format.NameKey:
		row.state, err = format.DecodeKeyState(row.value)
	case format.NameSite, format.NameLink, format.NameRecord, format.NameCapture:
		var r store.Row
		r, err = b.s.outgoing(b.snap, t, b.slice, []byte(row.Rest), row.value)
		row.value = r.Value
	}
	return err
}

// finish returns the rows of the chunk, key states first.
func (b *chunking) finish() ([]store.Row, error) {
	rows := make([]*chunkRow, 0, len(b.rows))
	for _, r := range b.rows {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(x, y *chunkRow) int {
		return cmp.Or(cmp.Compare(format.TableRank(format.Table(x.Name)), format.TableRank(format.Table(y.Name))),
			cmp.Compare(x.Rest, y.Rest))
	})
	out := make([]store.Row, len(rows))
	for i, r := range rows {
		if r.Name == format.NameKey && r.state.Fetched.After(r.Fetched) {
			r.value = r.state.Admission().Encode()
		}
		out[i] = store.Row{Key: append([]byte{r.Name}, r.Rest...), Value: r.value}
	}
	return out, nil
}
