package format

import (
	"cmp"
	"encoding/binary"
	"errors"

	"github.com/echo-node/echo-node/partition"
)

// FormatVersion is the version of the key layout of doc.go and of the values
// under it. Open refuses any other.
const FormatVersion = 1

// Table is the first byte of every row; doc.go has the list.
type Table byte

const (
	tabMeta         Table = 0x00 // name -> bytes of the store itself
	TabValue        Table = 0x01 // name -> bytes of Meta and SetMeta
	TabBody         Table = 'A'  // slice sum -> one body
	TabRobots       Table = 'B'  // slice site origin -> one robots.txt
	TabCount        Table = 'C'  // slice site -> counts
	TabDue          Table = 'D'  // slice site bucket priority seq -> Key
	TabUse          Table = 'E'  // slice sum, capture's row -> nothing: that has the body
	TabSlice        Table = 'G'  // slice position -> the rows a batch wrote
	TabUnreplicated Table = 'H'  // slice name row's rest -> nothing: a part of the log that was cut named it
	TabEdge         Table = 'F'  // slice site list's Key 00 account's Key -> edge
	TabOverride     Table = 'I'  // slice site Key 00 at sum -> Override
	TabGap          Table = 'J'  // slice site Key 00 from sum -> Gap
	TabKey          Table = 'K'  // slice site Key -> KeyState
	TabLog          Table = 'L'  // seq -> Key, the change log
	TabOutbox       Table = 'O'  // seq -> outbox row
	TabSite         Table = 'P'  // slice site -> pace
	TabName         Table = 'N'  // site -> slice of the pace written last
	TabRecord       Table = 'R'  // slice site Key -> record
	TabPost         Table = 'S'  // slice site Key 00 URI -> postRow
	TabAttempt      Table = 'T'  // slice site Key 00 -> Trial
	TabUnit         Table = 'U'  // slice unit -> placement
	TabCapture      Table = 'V'  // slice site Key class time -> capture
	TabWhere        Table = 'W'  // Key -> the geo slice that its record is in
	TabQueued       Table = 'X'  // slice Key -> seq of its outbox row
	TabWalk         Table = 'Y'  // slice site list's Key 00 began -> Walk
	TabCheckpoint   Table = 'Z'  // slice site Key 00 -> checkpoint
)

// Names in tabMeta.
const (
	MetaFormat  = "format"  // FormatVersion, uvarint
	MetaCharter = "charter" // JSON
	MetaID      = "id"      // 16 random bytes made by Create
	MetaSeq     = "seq"     // every sequence number in use is below it, 8 bytes
	MetaTrimmed = "trimmed" // the change log is gone up to here, 8 bytes
	MetaFetches = "fetches" // fetches of slices dropped since, 8 bytes
)

// SepByte ends a site inside a row's key. No Site or Key has it (checkKey), so
// sites of which one is a prefix of the other do not mix.
const SepByte = 0x00

var ErrBadRow = errors.New("damaged row")

// SiteID names one site inside one slice.
type SiteID struct {
	Slice partition.Slice
	Site  partition.Site
}

func (a SiteID) Compare(b SiteID) int {
	return cmp.Or(cmp.Compare(a.Slice, b.Slice), cmp.Compare(a.Site, b.Site))
}

func MetaKey(name string) []byte { return append([]byte{byte(tabMeta)}, name...) }

func ValueKey(name string) []byte { return append([]byte{byte(TabValue)}, name...) }

func SlicePrefix(t Table, sl partition.Slice) []byte {
	return binary.BigEndian.AppendUint64([]byte{byte(t)}, uint64(sl))
}

func SitePrefix(t Table, id SiteID) []byte {
	b := make([]byte, 0, 9+len(id.Site)+1+64)
	b = binary.BigEndian.AppendUint64(append(b, byte(t)), uint64(id.Slice))
	return append(append(b, id.Site...), SepByte)
}

func KeyRow(t Table, id SiteID, k partition.Key) []byte {
	return append(SitePrefix(t, id), k...)
}

func SiteName(site partition.Site) []byte { return append([]byte{byte(TabName)}, site...) }

func RobotsKey(id SiteID, origin string) []byte {
	return append(SitePrefix(TabRobots, id), origin...)
}

func QueuedKey(sl partition.Slice, k partition.Key) []byte {
	return append(SlicePrefix(TabQueued, sl), k...)
}

func SeqKey(t Table, seq uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{byte(t)}, seq)
}

// DueSuffixLen is bucket (8), priority (1), sequence (8).
const DueSuffixLen = 17

func DueKey(id SiteID, k KeyState) []byte {
	b := SitePrefix(TabDue, id)
	b = binary.BigEndian.AppendUint64(b, BucketOf(k.At))
	b = append(b, k.Priority)
	return binary.BigEndian.AppendUint64(b, k.Seq)
}

// SplitRow takes a row of a table ordered by slice and site apart.
func SplitRow(key []byte) (id SiteID, rest []byte, err error) {
	if len(key) < 10 {
		return SiteID{}, nil, ErrBadRow
	}
	id.Slice = partition.Slice(binary.BigEndian.Uint64(key[1:9]))
	site, rest, ok := CutSite(key[9:])
	if !ok {
		return SiteID{}, nil, ErrBadRow
	}
	id.Site = site
	return id, rest, nil
}

func CutSite(b []byte) (site partition.Site, rest []byte, ok bool) {
	for i, c := range b {
		if c == SepByte {
			return partition.Site(b[:i]), b[i+1:], true
		}
	}
	return "", nil, false
}

// After is the smallest key above every key with prefix p.
func After(p []byte) []byte {
	u := append([]byte(nil), p...)
	for i := len(u) - 1; i >= 0; i-- {
		if u[i]++; u[i] != 0 {
			return u[:i+1]
		}
	}
	return nil
}

func SplitLogKey(key []byte) (partition.Slice, error) {
	if len(key) != 17 {
		return 0, ErrBadRow
	}
	return partition.Slice(binary.BigEndian.Uint64(key[1:9])), nil
}
