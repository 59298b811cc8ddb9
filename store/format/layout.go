package format

import (
	"cmp"
	"encoding/binary"
	"errors"

	"github.com/echo-node/echo-node/partition"
)

// FormatVersion is the version of the key layout in doc.go and of the values. Open refuses any
// other version.
const FormatVersion = 1

// Table is the first byte of every row's key; doc.go has the list.
type Table byte

const (
	tabMeta         Table = 0x00 // name -> bytes of the store itself
	TabValue        Table = 0x01 // name -> bytes of Meta and SetMeta
	TabBody         Table = 'A'  // slice sum -> one body
	TabRobots       Table = 'B'  // slice site origin -> one robots.txt
	TabCount        Table = 'C'  // slice site -> counts
	TabDue          Table = 'D'  // slice site bucket priority seq -> Key
	TabUse          Table = 'E'  // slice sum, capture's row -> nothing: it uses the body
	TabSlice        Table = 'G'  // slice position -> the rows a batch wrote
	TabUnreplicated Table = 'H'  // slice name row's rest -> nothing: from a cut part of the log
	TabEdge         Table = 'F'  // slice site list's Key 00 account's Key -> edge
	TabOverride     Table = 'I'  // slice site Key 00 at sum -> Override
	TabGap          Table = 'J'  // slice site Key 00 from sum -> Gap
	TabKey          Table = 'K'  // slice site Key -> KeyState
	TabLog          Table = 'L'  // seq -> Key, the change log
	TabOutbox       Table = 'O'  // seq -> outbox row
	TabSite         Table = 'P'  // slice site -> pace
	TabName         Table = 'N'  // site -> slice of the pace that was written last
	TabRecord       Table = 'R'  // slice site Key -> record
	TabPost         Table = 'S'  // slice site Key 00 URI -> PostRow
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
	MetaSeq     = "seq"     // all sequence numbers in use are below it, 8 bytes
	MetaTrimmed = "trimmed" // the change log is trimmed up to here, 8 bytes
	MetaFetches = "fetches" // fetches of slices that were dropped, 8 bytes
)

// SepByte ends a site inside a row's key. No Site or Key contains it (store.CheckKey), so the rows
// of a site never mix with those of a site whose name has it as a prefix.
const SepByte = 0x00

// ErrBadRow is wrapped by the error for a row that cannot be decoded.
var ErrBadRow = errors.New("damaged row")

// SiteID identifies one site inside one slice.
type SiteID struct {
	Slice partition.Slice
	Site  partition.Site
}

// Compare orders sites by slice, then name.
func (a SiteID) Compare(b SiteID) int {
	return cmp.Or(cmp.Compare(a.Slice, b.Slice), cmp.Compare(a.Site, b.Site))
}

// MetaKey returns the key of a row of the store itself.
func MetaKey(name string) []byte { return append([]byte{byte(tabMeta)}, name...) }

// ValueKey returns the key of a row of Meta and SetMeta.
func ValueKey(name string) []byte { return append([]byte{byte(TabValue)}, name...) }

// SlicePrefix returns the prefix of all rows of sl in t.
func SlicePrefix(t Table, sl partition.Slice) []byte {
	return binary.BigEndian.AppendUint64([]byte{byte(t)}, uint64(sl))
}

// SitePrefix returns the prefix of all rows of a site in t.
func SitePrefix(t Table, id SiteID) []byte {
	b := make([]byte, 0, 9+len(id.Site)+1+64)
	b = binary.BigEndian.AppendUint64(append(b, byte(t)), uint64(id.Slice))
	return append(append(b, id.Site...), SepByte)
}

// KeyRow returns the key of k's row in t.
func KeyRow(t Table, id SiteID, k partition.Key) []byte {
	return append(SitePrefix(t, id), k...)
}

// SiteName returns the key of a site's row in TabName.
func SiteName(site partition.Site) []byte { return append([]byte{byte(TabName)}, site...) }

// RobotsKey returns the key of the row of one robots.txt.
func RobotsKey(id SiteID, origin string) []byte {
	return append(SitePrefix(TabRobots, id), origin...)
}

// QueuedKey returns the key of k's row in TabQueued.
func QueuedKey(sl partition.Slice, k partition.Key) []byte {
	return append(SlicePrefix(TabQueued, sl), k...)
}

// SeqKey returns the key of a row of TabLog or TabOutbox.
func SeqKey(t Table, seq uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{byte(t)}, seq)
}

// DueSuffixLen is the length of bucket (8), priority (1) and sequence (8).
const DueSuffixLen = 17

// DueKey returns the key of a Key's row in the due index.
func DueKey(id SiteID, k KeyState) []byte {
	b := SitePrefix(TabDue, id)
	b = binary.BigEndian.AppendUint64(b, BucketOf(k.At))
	b = append(b, k.Priority)
	return binary.BigEndian.AppendUint64(b, k.Seq)
}

// SplitRow parses a row's key of a table that is ordered by slice and site.
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

// CutSite splits b after the first SepByte into a site and the rest.
func CutSite(b []byte) (site partition.Site, rest []byte, ok bool) {
	for i, c := range b {
		if c == SepByte {
			return partition.Site(b[:i]), b[i+1:], true
		}
	}
	return "", nil, false
}

// After returns the smallest key above every key with prefix p, or nil if there is none.
func After(p []byte) []byte {
	u := append([]byte(nil), p...)
	for i := len(u) - 1; i >= 0; i-- {
		if u[i]++; u[i] != 0 {
			return u[:i+1]
		}
	}
	return nil
}

// SplitLogKey returns the slice in the key of a log entry.
func SplitLogKey(key []byte) (partition.Slice, error) {
	if len(key) != 17 {
		return 0, ErrBadRow
	}
	return partition.Slice(binary.BigEndian.Uint64(key[1:9])), nil
}
