package store

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Names of rows in a log entry; all but two are the letters of their tables. Those
// of leaves are their tables'.
const (
	nameKey     byte = 'K' // key state, with the time of the fetch it tells of
	nameNew     byte = 'N' // key state of a Key never fetched
	nameSite    byte = 'P' // pace of a site, and its robots.txt
	namePace    byte = 'Q' // pace of a site whose robots.txt are as they were
	nameRecord  byte = 'R'
	nameLink    byte = 'X' // outbox row, there or sent
	nameUnit    byte = 'U' // placement of a unit
	nameCapture byte = 'V' // capture, there or gone
)

// logRow names a row that a batch wrote.
type logRow struct {
	name    byte
	rest    string    // of the row's key, after the slice
	size    int       // about, of the row when the batch wrote it; not kept
	fetched time.Time // of a key state as the batch left it, zero = never
}

// logEntry is what a slice's log has for one batch, or for a log chunk of them.
type logEntry struct {
	entryHead
	rows []logRow
}

// entryHead is an entry without its rows. The running totals let the length of
// a log be known from its two ends.
type entryHead struct {
	pos     uint64 // 0: there is no entry
	span    uint64 // positions covered: those above pos-span; 0 where a log begins
	ordinal uint64 // how many entries there were up to and with this
	before  uint64 // bytes of all entries before this
	size    uint64 // bytes of this
}

// base is the position that a peer must be at, or above, for e to be its next.
func (e entryHead) base() uint64 { return e.pos - e.span }

func logKey(sl partition.Slice, pos uint64) []byte {
	return binary.BigEndian.AppendUint64(slicePrefix(tabSlice, sl), pos)
}

// encode is the value of an entry's row. Rows are put in order, so that what a
// row's key shares with the one before is not written again; of two for the
// same row the later fetch stays.
func (e *logEntry) encode() []byte {
	slices.SortFunc(e.rows, func(a, b logRow) int {
		if c := bytes.Compare([]byte(a.rest), []byte(b.rest)); c != 0 {
			return c
		}
		if a.name != b.name {
			return int(a.name) - int(b.name)
		}
		return b.fetched.Compare(a.fetched)
	})
	e.rows = slices.CompactFunc(e.rows, func(a, b logRow) bool { return a.name == b.name && a.rest == b.rest })
	w := encoder{b: make([]byte, 0, 32+24*len(e.rows))}
	w.byte(rowVersion)
	w.uint(e.span)
	w.uint(e.ordinal)
	w.uint(e.before)
	w.uint(uint64(len(e.rows)))
	last := ""
	for _, r := range e.rows {
		if r.name == nameKey && r.fetched.IsZero() {
			r.name = nameNew
		}
		n := shared(last, r.rest)
		w.byte(r.name)
		w.uint(uint64(n))
		w.text(r.rest[n:])
		if r.name == nameKey {
			w.time(r.fetched)
		}
		last = r.rest
	}
	e.size = uint64(17 + len(w.b))
	return w.b
}

func shared(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// maxRest bounds what follows the slice in a row's key.
const maxRest = MaxSiteBytes + 1 + MaxKeyBytes + 1 + max(MaxKeyBytes, MaxPostURI)

func decodeHead(key, value []byte) (entryHead, *decoder, error) {
	d := newDecoder(value)
	h := entryHead{span: d.uint(math.MaxUint64), ordinal: d.uint(math.MaxUint64), before: d.uint(math.MaxUint64),
		size: uint64(len(key) + len(value))}
	if len(key) != 17 || d.bad {
		return entryHead{}, nil, errBadRow
	}
	if h.pos = binary.BigEndian.Uint64(key[9:]); h.pos < h.span {
		return entryHead{}, nil, errBadRow
	}
	return h, d, nil
}

func decodeEntry(key, value []byte) (logEntry, error) {
	h, d, err := decodeHead(key, value)
	if err != nil {
		return logEntry{}, err
	}
	e := logEntry{entryHead: h}
	last := ""
	for range d.uint(MaxImportRows) {
		r := logRow{name: d.byte()}
		n := d.uint(uint64(len(last)))
		r.rest = last[:n] + d.text(maxRest)
		switch r.name {
		case nameKey:
			r.fetched = d.time()
		case nameNew:
			r.name = nameKey
		case nameSite, namePace, nameRecord, nameLink, nameUnit, nameCapture:
		default:
			d.bad = d.bad || !isItem(table(r.name))
		}
		if d.bad {
			break
		}
		e.rows = append(e.rows, r)
		last = r.rest
	}
	return e, d.end("log entry")
}
