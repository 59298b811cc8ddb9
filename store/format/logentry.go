package format

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Names of rows in a log entry; all but two are the letters of their tables. Those
// of leaves are their tables'.
const (
	NameKey     byte = 'K' // key state, with the time of the fetch it tells of
	NameNew     byte = 'N' // key state of a Key never fetched
	NameSite    byte = 'P' // pace of a site, and its robots.txt
	NamePace    byte = 'Q' // pace of a site whose robots.txt are as they were
	NameRecord  byte = 'R'
	NameLink    byte = 'X' // outbox row, there or sent
	NameUnit    byte = 'U' // placement of a unit
	NameCapture byte = 'V' // capture, there or gone
)

// LogRow names a row that a batch wrote.
type LogRow struct {
	Name    byte
	Rest    string    // of the row's key, after the slice
	Size    int       // about, of the row when the batch wrote it; not kept
	Fetched time.Time // of a key state as the batch left it, zero = never
}

// LogEntry is what a slice's log has for one batch, or for a log chunk of them.
type LogEntry struct {
	EntryHead
	Rows []LogRow
}

// EntryHead is an entry without its rows. The running totals let the length of
// a log be known from its two ends.
type EntryHead struct {
	Pos     uint64 // 0: there is no entry
	Span    uint64 // positions covered: those above pos-span; 0 where a log begins
	Ordinal uint64 // how many entries there were up to and with this
	Before  uint64 // bytes of all entries before this
	Size    uint64 // bytes of this
}

// Base is the position that a peer must be at, or above, for e to be its next.
func (e EntryHead) Base() uint64 { return e.Pos - e.Span }

func LogKey(sl partition.Slice, pos uint64) []byte {
	return binary.BigEndian.AppendUint64(SlicePrefix(TabSlice, sl), pos)
}

// Encode is the value of an entry's row. Rows are put in order, so that what a
// row's key shares with the one before is not written again; of two for the
// same row the later fetch stays.
func (e *LogEntry) Encode() []byte {
	slices.SortFunc(e.Rows, func(a, b LogRow) int {
		if c := bytes.Compare([]byte(a.Rest), []byte(b.Rest)); c != 0 {
			return c
		}
		if a.Name != b.Name {
			return int(a.Name) - int(b.Name)
		}
		return b.Fetched.Compare(a.Fetched)
	})
	e.Rows = slices.CompactFunc(e.Rows, func(a, b LogRow) bool { return a.Name == b.Name && a.Rest == b.Rest })
	w := Encoder{B: make([]byte, 0, 32+24*len(e.Rows))}
	w.Byte(RowVersion)
	w.uint(e.Span)
	w.uint(e.Ordinal)
	w.uint(e.Before)
	w.uint(uint64(len(e.Rows)))
	last := ""
	for _, r := range e.Rows {
		if r.Name == NameKey && r.Fetched.IsZero() {
			r.Name = NameNew
		}
		n := shared(last, r.Rest)
		w.Byte(r.Name)
		w.uint(uint64(n))
		w.Text(r.Rest[n:])
		if r.Name == NameKey {
			w.Time(r.Fetched)
		}
		last = r.Rest
	}
	e.Size = uint64(17 + len(w.B))
	return w.B
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
const maxRest = store.MaxSiteBytes + 1 + store.MaxKeyBytes + 1 + max(store.MaxKeyBytes, store.MaxPostURI)

func DecodeHead(key, value []byte) (EntryHead, *Decoder, error) {
	d := NewDecoder(value)
	h := EntryHead{Span: d.Uint(math.MaxUint64), Ordinal: d.Uint(math.MaxUint64), Before: d.Uint(math.MaxUint64),
		Size: uint64(len(key) + len(value))}
	if len(key) != 17 || d.Bad {
		return EntryHead{}, nil, ErrBadRow
	}
	if h.Pos = binary.BigEndian.Uint64(key[9:]); h.Pos < h.Span {
		return EntryHead{}, nil, ErrBadRow
	}
	return h, d, nil
}

func DecodeEntry(key, value []byte) (LogEntry, error) {
	h, d, err := DecodeHead(key, value)
	if err != nil {
		return LogEntry{}, err
	}
	e := LogEntry{EntryHead: h}
	last := ""
	for range d.Uint(store.MaxImportRows) {
		r := LogRow{Name: d.byte()}
		n := d.Uint(uint64(len(last)))
		r.Rest = last[:n] + d.text(maxRest)
		switch r.Name {
		case NameKey:
			r.Fetched = d.Time()
		case NameNew:
			r.Name = NameKey
		case NameSite, NamePace, NameRecord, NameLink, NameUnit, NameCapture:
		default:
			d.Bad = d.Bad || !IsItem(Table(r.Name))
		}
		if d.Bad {
			break
		}
		e.Rows = append(e.Rows, r)
		last = r.Rest
	}
	return e, d.End("log entry")
}
