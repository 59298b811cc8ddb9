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

// Names of rows in a log entry. All but two are the letters of their tables. Items use the letters
// of their tables too.
const (
	NameKey     byte = 'K' // key state, with the time of its fetch
	NameNew     byte = 'N' // key state of a Key never fetched
	NameSite    byte = 'P' // pace of a site, and its robots.txt
	NamePace    byte = 'Q' // pace of a site whose robots.txt did not change
	NameRecord  byte = 'R'
	NameLink    byte = 'X' // outbox row, present or sent
	NameUnit    byte = 'U' // placement of a unit
	NameCapture byte = 'V' // capture, present or deleted
)

// LogRow names a row that a batch wrote.
type LogRow struct {
	Name    byte
	Rest    string    // of the row's key, after the slice
	Size    int       // approximate, of the row when the batch wrote it; not stored
	Fetched time.Time // of a key state after the batch, zero = never
}

// LogEntry is the entry of a slice's log for one batch, or for a log chunk of several.
type LogEntry struct {
	EntryHead
	Rows []LogRow
}

// EntryHead is an entry without its rows. Its running totals give the length of a log from its two
// ends.
type EntryHead struct {
	Pos     uint64 // 0: there is no entry
	Span    uint64 // positions covered: those above Pos-Span; 0 where a log begins
	Ordinal uint64 // number of entries up to and including this one
	Before  uint64 // bytes of all entries before this
	Size    uint64 // bytes of this
}

// Base is the position that a peer must have reached for e to be its next entry.
func (e EntryHead) Base() uint64 { return e.Pos - e.Span }

// LogKey returns the key of the log entry of sl at pos.
func LogKey(sl partition.Slice, pos uint64) []byte {
	return binary.BigEndian.AppendUint64(SlicePrefix(TabSlice, sl), pos)
}

// Encode returns the value of an entry's row. It sorts the rows, so that the shared start of two
// row keys is written once. Of two entries for the same row, the later fetch stays.
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

// shared returns the length of the common prefix of a and b.
func shared(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// maxRest limits the length of a row's key after the slice.
const maxRest = store.MaxSiteBytes + 1 + store.MaxKeyBytes + 1 + max(store.MaxKeyBytes, store.MaxPostURI)

// DecodeHead decodes an entry without its rows. The Decoder is at the first row.
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

// DecodeEntry is the inverse of LogEntry.Encode.
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
