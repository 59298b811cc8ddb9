package format

import (
	"bytes"
	"cmp"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// An item is a row of a Key beside its record: a post, an account in a list, a
// walk of one, a gap, a person's word (Override), a checkpoint, attempts (Trial). All leaves are alike in what is done
// with them: each has a state that joins with another of the same item to one, in any
// order and any number of times the same (joinLeaf). So what a commit writes,
// what a log replicates, what is imported and what two replicas made apart goes one way.
//
// Only of walks, gaps and overrides there is a cap for each Key. It leaves the greatest
// names, so that every replica finds the same ones by itself, and nobody replicates
// that one is gone.

// ItemTables are in the order in which they are sent.
func ItemTables() []Table {
	return []Table{TabPost, TabEdge, TabWalk, TabGap, TabOverride, TabCheckpoint, TabAttempt}
}

func IsItem(t Table) bool {
	switch t {
	case TabPost, TabEdge, TabWalk, TabGap, TabOverride, TabCheckpoint, TabAttempt:
		return true
	}
	return false
}

// IsPacked says whether the items of t are packed, as rows with text are.
func IsPacked(t Table) bool { return t != TabEdge && t != TabWalk && t != TabAttempt }

// ItemID names an item among all.
type ItemID struct {
	SiteID
	Table Table
	Key   partition.Key
	Part  string // what follows the Key and a zero byte
}

func (id ItemID) Row() []byte { return append(ItemKey(id.Table, id.SiteID, id.Key), id.Part...) }

// ItemKey is what all items of k in t begin with.
func ItemKey(t Table, id SiteID, k partition.Key) []byte {
	return append(KeyRow(t, id, k), SepByte)
}

// CutItem takes what follows the site in a row's key apart.
func CutItem(rest []byte) (k partition.Key, part string, err error) {
	i := bytes.IndexByte(rest, SepByte)
	if i <= 0 {
		return "", "", ErrBadRow
	}
	return partition.Key(rest[:i]), string(rest[i+1:]), nil
}

// SplitItem takes a row's key apart.
func SplitItem(t Table, key []byte) (id ItemID, err error) {
	site, rest, err := SplitRow(key)
	if err != nil {
		return id, err
	}
	id = ItemID{SiteID: site, Table: t}
	id.Key, id.Part, err = CutItem(rest)
	return id, err
}

// OpenItem is the value of an item without its packing.
func (p *Packer) OpenItem(t Table, value []byte) ([]byte, error) {
	if !IsPacked(t) {
		return value, nil
	}
	return p.Unpack(value, MaxItem(t))
}

// MaxItem is the most that a packed item expands to.
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

func (p *Packer) CloseItem(t Table, state []byte) []byte {
	if !IsPacked(t) {
		return state
	}
	return p.Pack(state)
}

// CheckItem is the state of an item as this program writes it, from one that
// another peer sent.
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

// JoinItem is the state that two states of one item make.
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

// further is that of two states which by says came later or got further, of equals
// the greater in bytes: whoever joins them, in whatever order, keeps the same.
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

// KeepOf is how many items of a Key are kept.
func KeepOf(t Table) int {
	switch t {
	case TabWalk:
		return store.MaxWalks
	case TabOverride:
		return store.MaxOverrides
	}
	return store.MaxKeyGaps
}
