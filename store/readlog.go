package store

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/partition"
)

// ReadLog is the piece of sl's log above the position after, for a peer's
// ApplyLog: as many batches as fit into maxBytes, at least one; To is after
// when there is no other, and then durable: a snapshot (SliceRows) that is begun
// after that may be followed by ResetLog to it. ErrTrimmed: the log does not
// reach back to after, or one batch is larger than MaxParcelBytes. ErrGap:
// after is above the head.
//
// All of a log chunk is read at one moment, and durable: what a crash of this
// store could forget is not replicated. A row is replicated once, as it is now,
// however many batches wrote it, with one exception: the state of a Key that
// was fetched again after To is replicated as it was when it was admitted, since
// the links found by that fetch come only with a later log chunk. So a peer that
// has a log chunk and not the next has every Key and record of its batches, and
// has every link, or the page is due (I3).
func (s *Store) ReadLog(sl partition.Slice, after uint64, maxBytes int) (LogChunk, error) {
	r, err := s.LogReader(sl)
	if err != nil {
		return LogChunk{}, err
	}
	p, err := r.Read(sl, after, maxBytes)
	return p, errors.Join(err, r.Close())
}

// LogReader reads the logs of several slices at one moment, and waits for the
// disk once for all of them. Close must follow; the Store's waits for it. Not
// safe for concurrent use.
type LogReader struct {
	s      *Store
	known  map[partition.Slice]sliceLog // before snap
	snap   *pebble.Snapshot             // nil until there is something to read
	synced bool                         // what snap sees is durable
}

// LogReader is for the logs of sls.
func (s *Store) LogReader(sls ...partition.Slice) (*LogReader, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	r := &LogReader{s: s, known: make(map[partition.Slice]sliceLog, len(sls))}
	for _, sl := range sls {
		r.known[sl] = s.logs.get(sl)
	}
	return r, nil
}

// Close lets go of what was read.
func (r *LogReader) Close() error {
	defer r.s.leave()
	if r.snap == nil {
		return nil
	}
	return r.snap.Close()
}

// Read is ReadLog of one of the reader's slices, as its log was when the reader
// was made or later.
func (r *LogReader) Read(sl partition.Slice, after uint64, maxBytes int) (LogChunk, error) {
	p, err := r.read(sl, after, maxBytes)
	if err != nil {
		return LogChunk{}, fmt.Errorf("store: log of %s above %d: %w", sl, after, err)
	}
	return p, nil
}

func (r *LogReader) read(sl partition.Slice, from uint64, maxBytes int) (p LogChunk, err error) {
	known, ok := r.known[sl]
	if !ok {
		return p, errors.New("not of this reader")
	}
	if known.last.pos == from && known.durable >= from { // most slices, most of the time
		return LogChunk{Slice: sl, From: from, To: from}, nil
	}
	if r.snap == nil {
		r.snap = r.s.db.NewSnapshot()
	}
	s, snap := r.s, r.snap
	p = LogChunk{Slice: sl, From: from, To: from}
	if !r.synced || known.last.pos <= from { // else there is more, and it is durable
		head, err := s.lastEntry(snap, sl)
		if err != nil {
			return p, err
		}
		if head.pos < from {
			return p, fmt.Errorf("%w: the head is %d", ErrGap, head.pos)
		}
		if now := s.logs.get(sl); !r.synced && (now.cuts != known.cuts || now.durable < head.pos) {
			if err := s.barrier(); err != nil {
				return p, err
			}
			r.synced = true
		}
		if head.pos == from {
			return p, nil
		}
	}
	b := chunking{s: s, snap: snap, slice: sl, rows: make(map[chunkName]*chunkRow)}
	prefix := slicePrefix(tabSlice, sl)
	err = scan(snap, logKey(sl, from+1), after(prefix), func(key, value []byte) (bool, error) {
		e, err := decodeEntry(key, value)
		if err != nil {
			return false, err
		}
		if e.base() > p.To {
			return false, fmt.Errorf("%w: it begins after %d", ErrTrimmed, e.base())
		}
		fits, err := b.add(e, maxBytes)
		if err == nil && !fits && p.To == p.From {
			err = fmt.Errorf("%w: the batch at %d is too large", ErrTrimmed, e.pos)
		}
		if fits {
			p.To = e.pos
		}
		return fits, err
	})
	if err == nil {
		p.Rows, err = b.finish()
	}
	if r.synced {
		s.logs.synced(sl, p.To, known.cuts)
	}
	return p, err
}

// lastEntry is the newest entry that r sees; pos 0 when there is none.
func (s *Store) lastEntry(r pebble.Reader, sl partition.Slice) (h entryHead, err error) {
	p := slicePrefix(tabSlice, sl)
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: p, UpperBound: after(p)})
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.Last() {
		return h, it.Error()
	}
	v, err := it.ValueAndErr()
	if err == nil {
		h, _, err = decodeHead(it.Key(), v)
	}
	return h, err
}

// barrier returns when all that was visible before is durable: the write-ahead
// log is written in order. It takes no room, so a full disk does not refuse it.
func (s *Store) barrier() error {
	if f := s.failed.Load(); f != nil {
		return f.err
	}
	b := s.db.NewBatch()
	_ = b.LogData([]byte{0}, nil)
	return s.commit(b)
}

// chunking is a log chunk being made.
type chunking struct {
	s              *Store
	snap           *pebble.Snapshot
	slice          partition.Slice
	rows           map[chunkName]*chunkRow
	size, expanded int
}

// chunkName is a row; the two names of a pace are one.
type chunkName struct {
	name byte
	rest string
}

type chunkRow struct {
	logRow
	value []byte
	state keyState // of a Key
}

// add takes the rows of e in; false when they are too many for this log chunk.
// maxBytes binds only when there is a batch in it already, MaxParcelBytes always.
func (b *chunking) add(e logEntry, maxBytes int) (fits bool, err error) {
	limit := MaxLogChunkBytes
	if len(b.rows) > 0 {
		limit = min(limit, maxBytes)
	}
	size, expanded := b.size, b.expanded
	fresh := make(map[chunkName]*chunkRow, len(e.rows))
	for _, r := range e.rows {
		n := chunkName{r.name, r.rest}
		if r.name == namePace {
			n.name = nameSite
		}
		had := b.rows[n]
		if had == nil {
			had = fresh[n]
		}
		if had != nil && (r.name != nameSite || had.name == nameSite) {
			continue
		}
		row := &chunkRow{logRow: r}
		if err := b.read(row); err != nil {
			return false, fmt.Errorf("row %c %q of the batch at %d: %w", r.name, r.rest, e.pos, err)
		}
		if row.value == nil && (r.name == nameRecord || isItem(table(r.name)) && table(r.name) != tabAttempt) {
			continue // its Key is placed or withdrawn since, or there are later ones: a replica finds so, too
		}
		fresh[n] = row
		size += 1 + len(r.rest) + len(row.value)
		expanded += expandsTo(row.value, r.name)
		if size > limit || expanded > MaxImportBytes || len(b.rows)+len(fresh) > MaxImportRows {
			return false, nil
		}
	}
	for n, row := range fresh {
		b.rows[n] = row
	}
	for _, r := range e.rows { // of several batches that left a Key, the last
		if had := b.rows[chunkName{r.name, r.rest}]; r.name == nameKey && had.fetched.Before(r.fetched) {
			had.fetched = r.fetched
		}
	}
	b.size, b.expanded = size, expanded
	return true, nil
}

// read gets the value of a row; none for a link that was sent or a capture or
// record that is gone.
func (b *chunking) read(row *chunkRow) (err error) {
	t := table(row.name)
	if row.name == namePace {
		t = tabSite
	}
	key := append(slicePrefix(t, b.slice), row.rest...)
	if row.value, err = get(b.snap, key); err != nil {
		gone := row.name == nameLink || row.name == nameCapture || isItem(t) || row.name == nameRecord &&
			(b.s.charter.Mode == partition.ModeGeo || ofFile([]byte(row.rest)))
		if gone && errors.Is(err, ErrNotExist) {
			row.value, err = nil, nil
		}
		return err
	}
	switch row.name {
	case nameKey:
		row.state, err = decodeKeyState(row.value)
	case nameSite, nameLink, nameRecord, nameCapture:
		var r Row
		r, err = b.s.outgoing(b.snap, t, b.slice, []byte(row.rest), row.value)
		row.value = r.Value
	}
	return err
}

// expandsTo is how many bytes a packed value says it has inside, as ApplyLog
// counts them.
func expandsTo(value []byte, name byte) int {
	if name == nameKey || name == nameLink || name == nameUnit || isItem(table(name)) && !isPacked(table(name)) ||
		len(value) < 2 {
		return 0
	}
	if name == nameCapture {
		row, body, err := cutCapture(value)
		if err != nil {
			return 0
		}
		return expandsTo(row, nameRecord) + expandsTo(body, nameRecord)
	}
	if value[1] == packZstd {
		n, _ := binary.Uvarint(value[2:])
		return int(n)
	}
	return len(value) - 2
}

// finish is the rows of the log chunk, key states first.
func (b *chunking) finish() ([]Row, error) {
	rows := make([]*chunkRow, 0, len(b.rows))
	for _, r := range b.rows {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(x, y *chunkRow) int {
		return cmp.Or(cmp.Compare(tableRank(table(x.name)), tableRank(table(y.name))), cmp.Compare(x.rest, y.rest))
	})
	out := make([]Row, len(rows))
	for i, r := range rows {
		if r.name == nameKey && r.state.fetched.After(r.fetched) {
			r.value = r.state.admission().encode()
		}
		out[i] = Row{Key: append([]byte{r.name}, r.rest...), Value: r.value}
	}
	return out, nil
}

// admission is the state of a Key as it was when it was admitted.
func (k keyState) admission() keyState {
	at := k.admitted
	if at.IsZero() {
		at = k.fetched
	}
	return keyState{state: StatePending, seed: k.seed, at: at, priority: k.priority, depth: k.depth,
		seq: k.seq, admitted: k.admitted, referrer: k.referrer}
}
