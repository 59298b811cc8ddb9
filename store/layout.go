package store

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/echo-node/echo-node/partition"
)

// FormatVersion is the version of the key layout of doc.go and of the values
// under it. Open refuses any other.
const FormatVersion = 1

// table is the first byte of every row; doc.go has the list.
type table byte

const (
	tabMeta         table = 0x00 // name -> bytes of the store itself
	tabValue        table = 0x01 // name -> bytes of Meta and SetMeta
	tabBody         table = 'A'  // slice sum -> one body
	tabRobots       table = 'B'  // slice site origin -> one robots.txt
	tabCount        table = 'C'  // slice site -> counts
	tabDue          table = 'D'  // slice site bucket priority seq -> Key
	tabUse          table = 'E'  // slice sum, capture's row -> nothing: that has the body
	tabSlice        table = 'G'  // slice position -> the rows a batch wrote
	tabUnreplicated table = 'H'  // slice name row's rest -> nothing: a part of the log that was cut named it
	tabEdge         table = 'F'  // slice site list's Key 00 account's Key -> edge
	tabOverride     table = 'I'  // slice site Key 00 at sum -> Override
	tabGap          table = 'J'  // slice site Key 00 from sum -> Gap
	tabKey          table = 'K'  // slice site Key -> keyState
	tabLog          table = 'L'  // seq -> Key, the change log
	tabOutbox       table = 'O'  // seq -> outbox row
	tabSite         table = 'P'  // slice site -> pace
	tabName         table = 'N'  // site -> slice of the pace written last
	tabRecord       table = 'R'  // slice site Key -> record
	tabPost         table = 'S'  // slice site Key 00 URI -> postRow
	tabAttempt      table = 'T'  // slice site Key 00 -> Trial
	tabUnit         table = 'U'  // slice unit -> placement
	tabCapture      table = 'V'  // slice site Key class time -> capture
	tabWhere        table = 'W'  // Key -> the geo slice that its record is in
	tabQueued       table = 'X'  // slice Key -> seq of its outbox row
	tabWalk         table = 'Y'  // slice site list's Key 00 began -> Walk
	tabCheckpoint   table = 'Z'  // slice site Key 00 -> checkpoint
)

// Names in tabMeta.
const (
	metaFormat  = "format"  // FormatVersion, uvarint
	metaCharter = "charter" // JSON
	metaID      = "id"      // 16 random bytes made by Create
	metaSeq     = "seq"     // every sequence number in use is below it, 8 bytes
	metaTrimmed = "trimmed" // the change log is gone up to here, 8 bytes
	metaFetches = "fetches" // fetches of slices dropped since, 8 bytes
)

// Caps. What a Key, a site or a peer sends is refused above them.
const (
	MaxKeyBytes    = 8 << 10  // of a Key, text
	MaxSiteBytes   = 1 << 10  // of a Site, text
	MaxRecordBytes = 3 << 20  // of a Record, as JSON: it fits a message between peers (Record.fit)
	oldRecordBytes = 16 << 20 // of a Record that an earlier version wrote, or sends; cut when it is read
	maxReason      = 512      // bytes kept of Due.Reason
	maxHeader      = 1 << 10  // bytes kept of an ETag, Last-Modified or digest
	maxDepth       = 1 << 20
	maxAttempts    = 1 << 20
)

// sepByte ends a site inside a row's key. No Site or Key has it (checkKey), so
// sites of which one is a prefix of the other do not mix.
const sepByte = 0x00

var errBadRow = errors.New("damaged row")

// siteID names one site inside one slice.
type siteID struct {
	slice partition.Slice
	site  partition.Site
}

func (a siteID) compare(b siteID) int {
	return cmp.Or(cmp.Compare(a.slice, b.slice), cmp.Compare(a.site, b.site))
}

// idOf is k in its hash slice, idIn in the slice sl; 0 is the hash slice.
func (s *Store) idOf(k partition.Key) siteID { return s.idIn(0, k) }

func (s *Store) idIn(sl partition.Slice, k partition.Key) siteID {
	if sl == 0 {
		sl = s.charter.Slice(k)
	}
	return siteID{slice: sl, site: k.Site()}
}

// checkKey says why k cannot be a row: callers are expected to have made k at
// a gate of partition, this is the last line before the disk.
func checkKey(k partition.Key, site partition.Site) error {
	switch {
	case k == "":
		return errors.New("empty key")
	case len(k) > MaxKeyBytes:
		return fmt.Errorf("key of %d bytes, at most %d", len(k), MaxKeyBytes)
	case len(site) > MaxSiteBytes:
		return fmt.Errorf("site of %d bytes, at most %d", len(site), MaxSiteBytes)
	case strings.IndexByte(string(k), sepByte) >= 0 || strings.IndexByte(string(site), sepByte) >= 0:
		return errors.New("key with a zero byte")
	}
	return nil
}

func metaKey(name string) []byte  { return append([]byte{byte(tabMeta)}, name...) }
func valueKey(name string) []byte { return append([]byte{byte(tabValue)}, name...) }

func slicePrefix(t table, sl partition.Slice) []byte {
	return binary.BigEndian.AppendUint64([]byte{byte(t)}, uint64(sl))
}

func sitePrefix(t table, id siteID) []byte {
	b := make([]byte, 0, 9+len(id.site)+1+64)
	b = binary.BigEndian.AppendUint64(append(b, byte(t)), uint64(id.slice))
	return append(append(b, id.site...), sepByte)
}

func keyRow(t table, id siteID, k partition.Key) []byte {
	return append(sitePrefix(t, id), k...)
}

func siteName(site partition.Site) []byte { return append([]byte{byte(tabName)}, site...) }

func robotsKey(id siteID, origin string) []byte {
	return append(sitePrefix(tabRobots, id), origin...)
}

func queuedKey(sl partition.Slice, k partition.Key) []byte {
	return append(slicePrefix(tabQueued, sl), k...)
}

func seqKey(t table, seq uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{byte(t)}, seq)
}

// dueSuffixLen is bucket (8), priority (1), sequence (8).
const dueSuffixLen = 17

func dueKey(id siteID, k keyState) []byte {
	b := sitePrefix(tabDue, id)
	b = binary.BigEndian.AppendUint64(b, bucketOf(k.at))
	b = append(b, k.priority)
	return binary.BigEndian.AppendUint64(b, k.seq)
}

// splitRow takes a row of a table ordered by slice and site apart.
func splitRow(key []byte) (id siteID, rest []byte, err error) {
	if len(key) < 10 {
		return siteID{}, nil, errBadRow
	}
	id.slice = partition.Slice(binary.BigEndian.Uint64(key[1:9]))
	site, rest, ok := cutSite(key[9:])
	if !ok {
		return siteID{}, nil, errBadRow
	}
	id.site = site
	return id, rest, nil
}

func cutSite(b []byte) (site partition.Site, rest []byte, ok bool) {
	for i, c := range b {
		if c == sepByte {
			return partition.Site(b[:i]), b[i+1:], true
		}
	}
	return "", nil, false
}

// after is the smallest key above every key with prefix p.
func after(p []byte) []byte {
	u := append([]byte(nil), p...)
	for i := len(u) - 1; i >= 0; i-- {
		if u[i]++; u[i] != 0 {
			return u[:i+1]
		}
	}
	return nil
}

func splitLogKey(key []byte) (partition.Slice, error) {
	if len(key) != 17 {
		return 0, errBadRow
	}
	return partition.Slice(binary.BigEndian.Uint64(key[1:9])), nil
}
