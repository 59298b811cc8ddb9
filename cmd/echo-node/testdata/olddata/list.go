// Command list prints what a data directory holds, one JSON object a line.
// It was built of the commit that made olddata.tar.zst: see README.md.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

func main() {
	var b bytes.Buffer
	if err := holding(os.Args[1], &b); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if _, err := os.Stdout.Write(b.Bytes()); err != nil {
		os.Exit(1)
	}
}

// holding writes what the store of a data directory holds, one JSON object a line, in order.
func holding(dir string, w io.Writer) error {
	s, err := store.Open(filepath.Join(dir, "store"), store.Options{})
	if err != nil {
		return err
	}
	l := lister{s: s, enc: json.NewEncoder(w)}
	for _, sl := range s.Charter().Slices() {
		l.slice(sl)
	}
	l.outbox()
	return errors.Join(l.err, s.Close())
}

// lister remembers the first error.
type lister struct {
	s   *store.Store
	enc *json.Encoder
	err error
}

// line writes one object: what it is, and itself.
func (l *lister) line(what string, v any) {
	if l.err == nil {
		l.err = l.enc.Encode(map[string]any{what: v})
	}
}

func (l *lister) failed(err error) {
	if l.err == nil {
		l.err = err
	}
}

// each is a function that writes what it is given.
func each[T any](l *lister, what string) func(T) (bool, error) {
	return func(v T) (bool, error) {
		l.line(what, v)
		return true, l.err
	}
}

// slice lists the rows of one slice, with what belongs to each of its keys.
func (l *lister) slice(sl partition.Slice) {
	tables := map[string]int{}
	var keys []partition.Key
	for from := []byte(nil); l.err == nil; {
		rows, next, err := l.s.SliceRows(sl, from, 1<<20)
		l.failed(err)
		for _, r := range rows {
			tables[string(r.Key[:1])]++
			if _, k, ok := bytes.Cut(r.Key[1:], []byte{0}); ok && r.Key[0] == 'K' {
				keys = append(keys, partition.Key(k))
			}
		}
		if from = next; from == nil {
			break
		}
	}
	if len(tables) == 0 {
		return
	}
	l.line("rows", map[string]any{"slice": sl, "tables": tables})
	l.failed(l.s.SliceRecords(sl, "", each[store.Record](l, "record")))
	l.failed(l.s.SlicePosts(sl, "", "", each[store.Record](l, "post")))
	l.failed(l.s.SliceGaps(sl, store.Gap{}, each[store.Gap](l, "gap")))
	l.failed(l.s.SliceLists(sl, "", func(k partition.Key) (bool, error) {
		l.failed(l.s.Walks(sl, k, each[store.Walk](l, "walk")))
		l.failed(l.s.Edges(sl, k, "", each[store.Edge](l, "edge")))
		return true, l.err
	}))
	for _, k := range keys {
		l.key(sl, k)
	}
}

// key lists what a key has beside its record.
func (l *lister) key(sl partition.Slice, k partition.Key) {
	due, err := l.s.DueIn(sl, k)
	l.failed(err)
	l.line("key", due)
	said, err := l.s.Overrides(sl, k)
	l.failed(err)
	for _, o := range said {
		l.line("override", o)
	}
	l.failed(l.s.Captures(sl, k, nil, func(_ []byte, c store.Capture) (bool, error) {
		sum := sha256.Sum256(c.Body)
		c.Body = sum[:]
		l.line("capture", c)
		return true, l.err
	}))
	state, err := l.s.Checkpoint(sl, k)
	if l.failed(err); len(state) > 0 {
		l.line("checkpoint", map[string]any{"key": k, "state": state})
	}
}

// outbox lists the links that other slices still have to be told of.
func (l *lister) outbox() {
	for from := uint64(0); ; {
		rows, reached, err := l.s.Outbox(from, 1000, func(partition.Slice) bool { return true })
		l.failed(err)
		for _, r := range rows {
			l.line("outbox", r)
		}
		if err != nil || reached == from {
			return
		}
		from = reached
	}
}
