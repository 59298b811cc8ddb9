package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/echo-node/echo-node/partition"
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

// itemTables are in the order in which they are sent.
func itemTables() []table {
	return []table{tabPost, tabEdge, tabWalk, tabGap, tabOverride, tabCheckpoint, tabAttempt}
}

func isItem(t table) bool {
	switch t {
	case tabPost, tabEdge, tabWalk, tabGap, tabOverride, tabCheckpoint, tabAttempt:
		return true
	}
	return false
}

// isPacked says whether the items of t are packed, as rows with text are.
func isPacked(t table) bool { return t != tabEdge && t != tabWalk && t != tabAttempt }

// itemID names an item among all.
type itemID struct {
	siteID
	table table
	key   partition.Key
	part  string // what follows the Key and a zero byte
}

func (id itemID) row() []byte { return append(itemKey(id.table, id.siteID, id.key), id.part...) }

// itemKey is what all items of k in t begin with.
func itemKey(t table, id siteID, k partition.Key) []byte {
	return append(keyRow(t, id, k), sepByte)
}

// cutItem takes what follows the site in a row's key apart.
func cutItem(rest []byte) (k partition.Key, part string, err error) {
	i := bytes.IndexByte(rest, sepByte)
	if i <= 0 {
		return "", "", errBadRow
	}
	return partition.Key(rest[:i]), string(rest[i+1:]), nil
}

// splitItem takes a row's key apart.
func splitItem(t table, key []byte) (id itemID, err error) {
	site, rest, err := splitRow(key)
	if err != nil {
		return id, err
	}
	id = itemID{siteID: site, table: t}
	id.key, id.part, err = cutItem(rest)
	return id, err
}

// openItem is the value of an item without its packing.
func (p *packer) openItem(t table, value []byte) ([]byte, error) {
	if !isPacked(t) {
		return value, nil
	}
	return p.unpack(value, maxItem(t))
}

// maxItem is the most that a packed item expands to.
func maxItem(t table) int {
	switch t {
	case tabPost:
		return maxPostRow
	case tabCheckpoint:
		return MaxCheckpointBytes + 64
	case tabOverride:
		return maxOverrideRow
	}
	return maxGapRow
}

func (p *packer) closeItem(t table, state []byte) []byte {
	if !isPacked(t) {
		return state
	}
	return p.pack(state)
}

// checkItem is the state of an item as this program writes it, from one that
// another peer sent.
func checkItem(id itemID, state []byte) (canonical []byte, at time.Time, err error) {
	switch id.table {
	case tabPost:
		return checkPost(id, state)
	case tabEdge:
		return checkEdge(id, state)
	case tabWalk:
		return checkWalk(id, state)
	case tabGap:
		return checkGap(id, state)
	case tabOverride:
		return checkOverride(id, state)
	case tabAttempt:
		return checkTrial(id, state)
	}
	return checkCheckpoint(id, state)
}

// joinItem is the state that two states of one item make.
func joinItem(id itemID, a, b []byte) ([]byte, error) {
	if bytes.Equal(a, b) {
		return a, nil
	}
	switch id.table {
	case tabPost:
		return joinPosts(a, b)
	case tabEdge:
		return joinEdges(a, b)
	case tabWalk:
		parse := func(b []byte) (Walk, error) { return parseWalk(id, b) }
		return further(a, b, parse,
			func(v, w Walk) int { return cmp.Or(v.At.Compare(w.At), cmp.Compare(v.Seen, w.Seen)) })
	case tabGap:
		return further(a, b, parseGap, func(g, h Gap) int { return g.At.Compare(h.At) })
	case tabOverride:
		return joinOverrides(a, b)
	case tabAttempt:
		return joinTrials(a, b)
	}
	return further(a, b, parseCheckpoint, func(c, d checkpoint) int { return c.at.Compare(d.at) })
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

// state is that of an item as this batch leaves it so far; nil when there is none.
func (t *txn) state(id itemID) ([]byte, error) {
	row := id.row()
	if now, ok := t.items[string(row)]; ok {
		return now, nil
	}
	v, err := t.s.get(row)
	if err != nil {
		return nil, ignoreAbsent(err)
	}
	return t.s.packer.openItem(id.table, v)
}

// item joins a state to what there is, and writes what that makes, if it is more.
func (t *txn) item(id itemID, now []byte) error {
	old, err := t.state(id)
	if err != nil {
		return fmt.Errorf("row %q: %w", id.row(), err)
	}
	if old != nil {
		if now, err = joinItem(id, old, now); err != nil {
			return fmt.Errorf("row %q: %w", id.row(), err)
		}
		if bytes.Equal(old, now) {
			return nil
		}
	}
	row := id.row()
	_, again := t.items[string(row)]
	if t.items == nil {
		t.items = map[string][]byte{}
	}
	t.items[string(row)] = now
	value := t.s.packer.closeItem(id.table, now)
	t.name(id.slice, byte(id.table), row[9:], len(value), time.Time{})
	if err := t.b.Set(row, value, nil); err != nil || again {
		return err
	}
	switch id.table {
	case tabPost:
		if old == nil {
			n, err := t.count(id.siteID)
			if err != nil {
				return err
			}
			n.posts++
		}
		if err := t.where(id.slice, id.key); err != nil {
			return err
		}
		return t.logPost(id.key, id.part)
	case tabWalk:
		return t.where(id.slice, id.key)
	}
	return nil
}

// trimItems leaves the keep greatest of the items of k.
func (t *txn) trimItems(tab table, id siteID, k partition.Key, keep int) error {
	prefix := itemKey(tab, id, k)
	var rows [][]byte
	err := t.s.scan(prefix, after(prefix), func(key, _ []byte) (bool, error) {
		rows = append(rows, bytes.Clone(key))
		return true, nil
	})
	if err != nil || len(rows)+len(t.items) <= keep {
		return err
	}
	there := make(map[string]bool, len(rows))
	for _, r := range rows {
		there[string(r)] = true
	}
	for row := range t.items {
		if bytes.HasPrefix([]byte(row), prefix) && !there[row] {
			rows = append(rows, []byte(row))
		}
	}
	slices.SortFunc(rows, bytes.Compare)
	for _, row := range rows[:max(len(rows)-keep, 0)] {
		if err := t.b.Delete(row, nil); err != nil {
			return err
		}
	}
	return nil
}

// dropItems forgets those of k and of its lists: k is placed in another slice
// and fetched there. A list that is a Key of its own here goes its own way.
func (t *txn) dropItems(id siteID, k partition.Key) error {
	keys := []partition.Key{k}
	if k.Kind() == partition.KindAccount {
		for _, l := range []partition.Key{k + "/followers", k + "/following"} {
			_, err := t.s.get(keyRow(tabKey, id, l))
			if errors.Is(err, ErrNotExist) {
				keys = append(keys, l)
			} else if err != nil {
				return err
			}
		}
	}
	for _, k := range keys {
		for _, tab := range itemTables() {
			if err := t.dropTable(tab, id, k); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *txn) dropTable(tab table, id siteID, k partition.Key) error {
	prefix := itemKey(tab, id, k)
	rows := map[string]bool{} // whether it is on disk
	err := t.s.scan(prefix, after(prefix), func(key, _ []byte) (bool, error) {
		rows[string(key)] = true
		return true, nil
	})
	if err != nil {
		return err
	}
	for row := range t.items {
		if bytes.HasPrefix([]byte(row), prefix) {
			rows[row] = rows[row] || false
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if tab == tabPost {
		n, err := t.count(id)
		if err != nil {
			return err
		}
		n.posts -= int64(len(rows)) // item counted those that are not on disk yet
		for row := range rows {
			if err := t.logPost(k, row[len(prefix):]); err != nil {
				return err
			}
		}
	}
	for row := range rows {
		delete(t.items, row)
		if err := t.b.Delete([]byte(row), nil); err != nil {
			return err
		}
	}
	if tab == tabAttempt {
		return nil
	}
	return t.nowhere(id.slice, k)
}

// item validates a row of another peer.
func (v *validator) item(i *incoming, t table, rest, value []byte) error {
	var part string
	k, part, err := cutItem(rest)
	if err != nil {
		return err
	}
	if i.key, err = partition.KeyFromWire(string(k)); err != nil {
		return err
	}
	if err := v.home(i); err != nil {
		return err
	}
	i.item = &itemID{siteID: i.id, table: t, key: i.key, part: part}
	if i.sent = t == tabAttempt && len(value) == 0; i.sent {
		return nil
	}
	state := value
	if isPacked(t) {
		if state, err = v.unpack(value, maxItem(t)); err != nil {
			return err
		}
	}
	var at time.Time
	if i.body, at, err = checkItem(*i.item, state); err == nil {
		err = v.timely(at)
	}
	return err
}

// item joins a row of another peer.
func (m *merger) item(i incoming) error {
	if m.t.s.charter.Mode == partition.ModeGeo {
		if _, err := m.stateOf(i.id, i.key); err != nil { // end drops what is of a Key that was placed
			return err
		}
	}
	switch {
	case i.sent && m.log:
		return m.t.trialGone(i.item.row()) // the slice's owner says so in its log
	case i.sent:
		return nil // a row that is no more; only a log takes rows away
	}
	if i.item.table == tabAttempt && !m.log {
		if stale, err := m.staleTrial(i); stale || err != nil {
			return err
		}
	}
	if err := m.t.item(*i.item, i.body); err != nil {
		return err
	}
	if t := i.item.table; t == tabGap || t == tabWalk || t == tabOverride {
		m.capped[itemID{siteID: i.id, table: t, key: i.key}] = true
	}
	return nil
}

// keepOf is how many items of a Key are kept.
func keepOf(t table) int {
	switch t {
	case tabWalk:
		return MaxWalks
	case tabOverride:
		return MaxOverrides
	}
	return MaxKeyGaps
}

// itemsGone is told that all of sl goes: the index forgets its posts, and where
// the Keys are is not known any more.
func (t *txn) itemsGone(sl partition.Slice) error {
	for _, tab := range []table{tabPost, tabWalk} {
		p := slicePrefix(tab, sl)
		var of partition.Key
		err := t.s.scan(p, after(p), func(key, _ []byte) (bool, error) {
			id, err := splitItem(tab, key)
			if err == nil && id.key != of {
				err = t.nowhere(sl, id.key)
				of = id.key
			}
			if err == nil && tab == tabPost {
				err = t.logPost(id.key, id.part)
			}
			return true, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// KeysFrom calls fn for the Keys of which there is anything to export, a record,
// posts, a list or gaps, in order of slice, site and Key after from in sl (0: its
// hash slice), until it answers false; "" begins with sl, or with all. only is KindPost, KindEdges or
// KindGap for those that have any, "" for all.
func (s *Store) KeysFrom(sl partition.Slice, from partition.Key, only string,
	fn func(partition.Slice, partition.Key) (bool, error)) (err error) {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	tabs := map[string][]table{"": {tabRecord, tabPost, tabWalk, tabGap}, KindPost: {tabPost},
		KindEdges: {tabRecord, tabWalk}, KindGap: {tabGap}}[only]
	var its []*keyIter
	for _, tab := range tabs {
		it, ierr := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{byte(tab)},
			UpperBound: after([]byte{byte(tab)})})
		if ierr != nil {
			return ierr
		}
		defer func() { err = errors.Join(err, it.Close()) }()
		k := &keyIter{it: it, table: tab}
		lower := []byte{byte(tab)}
		if from != "" {
			lower = k.behind(s.idIn(sl, from), from)
		} else if sl != 0 {
			lower = slicePrefix(tab, sl)
		}
		if err := k.seek(lower); err != nil {
			return fmt.Errorf("store: keys: %w", err)
		}
		its = append(its, k)
	}
	for {
		var first *keyIter
		for _, k := range its {
			if k.key != "" && (first == nil || k.before(first)) {
				first = k
			}
		}
		if first == nil {
			return nil
		}
		id, key := first.id, first.key
		more, err := fn(id.slice, key)
		if err != nil || !more {
			return err
		}
		for _, k := range its {
			if k.id == id && k.key == key {
				if err := k.seek(k.behind(id, key)); err != nil {
					return fmt.Errorf("store: keys: %w", err)
				}
			}
		}
	}
}

// keyIter goes over the Keys of one table; key "" is its end.
type keyIter struct {
	it    *pebble.Iterator
	table table
	id    siteID
	key   partition.Key
}

func (k *keyIter) before(o *keyIter) bool {
	return cmp.Or(k.id.compare(o.id), cmp.Compare(k.key, o.key)) < 0
}

// behind is the least row after those of key.
func (k *keyIter) behind(id siteID, key partition.Key) []byte {
	if isItem(k.table) {
		return after(itemKey(k.table, id, key))
	}
	return append(keyRow(k.table, id, key), 0)
}

func (k *keyIter) seek(lower []byte) error {
	k.key = ""
	if !k.it.SeekGE(lower) {
		return k.it.Error()
	}
	id, rest, err := splitRow(k.it.Key())
	if err != nil {
		return err
	}
	k.id, k.key = id, partition.Key(rest)
	if isItem(k.table) {
		k.key, _, err = cutItem(rest)
	}
	return err
}
