package format

import (
	"bytes"
	"cmp"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// An item is a row of a Key besides its record: a post, an account in a list, a walk of a list, a
// gap, an override, a checkpoint, or attempts (Trial). All items are treated alike. Each has a
// state that joins with another state of the same item to one. The result is the same in any order
// and any number of times (JoinItem). So the same code path serves what a commit writes, what a log
// replicates, what is imported, and what two replicas wrote separately.
//
// Only walks, gaps and overrides have a maximum number for each Key. The items with the greatest
// names stay, so every replica finds the same ones by itself, and no deletion is replicated.

// ItemTables returns the tables of items in the order in which they are sent.
func ItemTables() []Table {
	return []Table{TabPost, TabEdge, TabWalk, TabGap, TabOverride, TabCheckpoint, TabAttempt}
}

// IsItem reports whether t is a table of items.
func IsItem(t Table) bool {
	switch t {
	case TabPost, TabEdge, TabWalk, TabGap, TabOverride, TabCheckpoint, TabAttempt:
		return true
	}
	return false
}

// IsPacked reports whether the items of t are packed, as rows with text are.
func IsPacked(t Table) bool { return t != TabEdge && t != TabWalk && t != TabAttempt }

// ItemID identifies an item.
type ItemID struct {
	SiteID
	Table Table
	Key   partition.Key
	Part  string // the row's key after the Key and a zero byte
}

// Row returns the key of the item's row.
func (id ItemID) Row() []byte { return append(ItemKey(id.Table, id.SiteID, id.Key), id.Part...) }

// ItemKey returns the prefix of all items of k in t.
func ItemKey(t Table, id SiteID, k partition.Key) []byte {
	return append(KeyRow(t, id, k), SepByte)
}

// CutItem parses the part of a row's key after the site.
func CutItem(rest []byte) (k partition.Key, part string, err error) {
	i := bytes.IndexByte(rest, SepByte)
	if i <= 0 {
		return "", "", ErrBadRow
	}
	return partition.Key(rest[:i]), string(rest[i+1:]), nil
}

// SplitItem parses a row's key.
func SplitItem(t Table, key []byte) (id ItemID, err error) {
	site, rest, err := SplitRow(key)
	if err != nil {
		return id, err
	}
	id = ItemID{SiteID: site, Table: t}
	id.Key, id.Part, err = CutItem(rest)
	return id, err
}

// OpenItem returns the unpacked value of an item.
func (p *Packer) OpenItem(t Table, value []byte) ([]byte, error) {
	if !IsPacked(t) {
		return value, nil
	}
	return p.Unpack(value, MaxItem(t))
}

// MaxItem returns the maximum expanded size of an item of t.
func MaxItem(t Table) int {
	switch t {
	case TabPost:
		return maxPostRow
	case TabCheckpoint:
		return store.MaxCheckpointBytes + 64
	case TabOverride:
		return maxOverrideRow
	}
	return maxGapRow
}

// CloseItem is the inverse of OpenItem.
func (p *Packer) CloseItem(t Table, state []byte) []byte {
	if !IsPacked(t) {
		return state
	}
	return p.Pack(state)
}

// CheckItem checks the state of an item that another peer sent, and returns it in this program's
// own encoding.
func CheckItem(id ItemID, state []byte) (canonical []byte, at time.Time, err error) {
	switch id.Table {
	case TabPost:
		return checkPost(id, state)
	case TabEdge:
		return checkEdge(id, state)
	case TabWalk:
		return checkWalk(id, state)
	case TabGap:
		return checkGap(id, state)
	case TabOverride:
		return checkOverride(id, state)
	case TabAttempt:
		return checkTrial(id, state)
	}
	return checkCheckpoint(id, state)
}

// JoinItem joins two states of one item.
func JoinItem(id ItemID, a, b []byte) ([]byte, error) {
	if bytes.Equal(a, b) {
		return a, nil
	}
	switch id.Table {
	case TabPost:
		return joinPosts(a, b)
	case TabEdge:
		return joinEdges(a, b)
	case TabWalk:
		parse := func(b []byte) (store.Walk, error) { return ParseWalk(id, b) }
		return further(a, b, parse,
			func(v, w store.Walk) int { return cmp.Or(v.At.Compare(w.At), cmp.Compare(v.Seen, w.Seen)) })
	case TabGap:
		return further(a, b, ParseGap, func(g, h store.Gap) int { return g.At.Compare(h.At) })
	case TabOverride:
		return joinOverrides(a, b)
	case TabAttempt:
		return JoinTrials(a, b)
	}
	return further(a, b, ParseCheckpoint, func(c, d Checkpoint) int { return c.At.Compare(d.At) })
}

// further returns the greater of two states in the order by. If they are equal, it returns the one
// with the greater bytes. So every peer that joins them, in any order, keeps the same one.
func further[T any](a, b []byte, parse func([]byte) (T, error), by func(T, T) int) ([]byte, error) {
	v, err := parse(a)
	if err != nil {
		return nil, err
	}
	w, err := parse(b)
	if err != nil {
		return nil, err
	}
	if cmp.Or(by(v, w), bytes.Compare(a, b)) > 0 {
		return a, nil
	}
	return b, nil
}

// KeepOf returns how many items of a Key stay.
func KeepOf(t Table) int {
	switch t {
	case TabWalk:
		return store.MaxWalks
	case TabOverride:
		return store.MaxOverrides
	}
	return store.MaxKeyGaps
}
