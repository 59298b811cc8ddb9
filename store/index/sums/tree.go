package sums

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"

	"github.com/cespare/xxhash/v2"
)

// The list of segments is a bolt file (go.etcd.io/bbolt, internal/common). Bolt trusts what the
// pages of a file say. When they form a circle, it never ends. When they point outside the file,
// the process panics. So Open checks them first.

// The layout of the pages of such a file, in bytes.
const (
	boltMagic     = 0xED0CDAED
	boltHeader    = 16 // of a page: its id, kind, number of elements, number of overflow pages
	boltElement   = 16
	boltMeta      = 64 // magic, version, page size, flags, root, sequence, free list, end, tx, sum
	leastPage     = 1 << 10
	mostPage      = 1 << 16
	isBranch      = 0x01
	isLeaf        = 0x02
	isFree        = 0x10
	isBucket      = 0x01
	noFreeList    = ^uint64(0)
	countedInside = 0xffff // the number of a free list is its first element
)

var errTree = errors.New("it is no tree of pages")

// tree is the state of the walk through one file.
type tree struct {
	b    []byte
	page uint64 // size of one page
	end  uint64 // the first page that is not used
	seen map[uint64]bool
	sum  *xxhash.Digest // of all used pages
}

// State identifies the content of a list of segments at a transaction of bolt. Bolt does not change
// the pages in use before the next transaction is complete.
type State struct {
	Tx  uint64 `json:"tx"`
	Sum uint64 `json:"xxh64"` // of the pages in use
}

// Walk checks the bolt file b as its latest transaction left it. Time and memory are proportional
// to the length of the file, whatever its content. The error wraps errTree.
func Walk(b []byte) (State, error) {
	page, m := metaOf(b)
	if m == nil {
		return State{}, fmt.Errorf("no page says where it begins: %w", errTree)
	}
	t := &tree{b: b, page: page, end: binary.LittleEndian.Uint64(m[40:]), seen: map[uint64]bool{0: true, 1: true},
		sum: xxhash.New()}
	if t.end > uint64(len(b))/page {
		return State{}, fmt.Errorf("%d bytes for %d pages: %w", len(b), t.end, errTree)
	}
	_, _ = t.sum.Write(m)
	err := t.walk(binary.LittleEndian.Uint64(m[16:]))
	if free := binary.LittleEndian.Uint64(m[32:]); err == nil && free != noFreeList {
		err = t.free(free)
	}
	return State{Tx: txOf(m), Sum: t.sum.Sum64()}, err
}

func txOf(meta []byte) uint64 { return binary.LittleEndian.Uint64(meta[48:]) }

// latestTx returns the latest complete transaction in the named file, or 0 if there is none.
func latestTx(name string) (uint64, error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	b, err := io.ReadAll(io.LimitReader(f, 2*mostPage)) // the first two pages contain it
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	if _, m := metaOf(b); m != nil {
		return txOf(m), nil
	}
	return 0, nil
}

// metaOf returns the page size and the meta data of the latest transaction; m is nil if there is
// none.
func metaOf(b []byte) (page uint64, m []byte) {
	page, metas := metasOf(b)
	for _, x := range metas {
		if m == nil || txOf(x) > txOf(m) {
			m = x
		}
	}
	return page, m
}

// metasOf finds the meta pages, at most two, which say where the tree begins.
func metasOf(b []byte) (page uint64, metas [][]byte) {
	valid := func(at uint64) []byte {
		if at+boltHeader+boltMeta > uint64(len(b)) {
			return nil
		}
		m := b[at+boltHeader:][:boltMeta]
		sum := fnv.New64a()
		_, _ = sum.Write(m[:boltMeta-8])
		if binary.LittleEndian.Uint32(m) != boltMagic || binary.LittleEndian.Uint64(m[boltMeta-8:]) != sum.Sum64() {
			return nil
		}
		return m
	}
	if m := valid(0); m != nil {
		page = uint64(binary.LittleEndian.Uint32(m[8:]))
		metas = append(metas, m)
	}
	for size := uint64(leastPage); size <= mostPage; size *= 2 {
		if m := valid(size); m != nil && uint64(binary.LittleEndian.Uint32(m[8:])) == size &&
			(page == 0 || page == size) {
			return size, append(metas, m)
		}
	}
	if page < leastPage || page > mostPage {
		return 0, nil
	}
	return page, metas
}

// take returns the page id with its overflow pages, and marks them as used.
func (t *tree) take(id uint64) ([]byte, error) {
	if id >= t.end || t.seen[id] {
		return nil, fmt.Errorf("page %d of %d, or one that is in use twice: %w", id, t.end, errTree)
	}
	p := t.b[id*t.page:]
	more := uint64(binary.LittleEndian.Uint32(p[12:]))
	if id+more >= t.end || binary.LittleEndian.Uint64(p) != id {
		return nil, fmt.Errorf("page %d says it is another, or %d more: %w", id, more, errTree)
	}
	for i := id; i <= id+more; i++ {
		if i > id && t.seen[i] {
			return nil, fmt.Errorf("page %d is in use twice: %w", i, errTree)
		}
		t.seen[i] = true
	}
	p = p[:(more+1)*t.page]
	_, _ = t.sum.Write(p)
	return p, nil
}

// walk checks the page id and all pages that it leads to.
func (t *tree) walk(id uint64) error {
	p, err := t.take(id)
	if err == nil {
		err = t.elements(p)
	}
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

// elements continues with the elements of a page, or of an inline page within a value.
func (t *tree) elements(p []byte) error {
	if len(p) < boltHeader {
		return errTree
	}
	kind, n := binary.LittleEndian.Uint16(p[8:]), int(binary.LittleEndian.Uint16(p[10:]))
	if kind != isBranch && kind != isLeaf || boltHeader+n*boltElement > len(p) || kind == isBranch && n == 0 {
		return fmt.Errorf("kind %d with %d elements: %w", kind, n, errTree)
	}
	var before []byte
	for i := range n {
		e := p[boltHeader+i*boltElement:]
		var fields [4]uint64 // of a leaf: flags, offset of its key, lengths of key and value
		for f := range fields {
			fields[f] = uint64(binary.LittleEndian.Uint32(e[4*f:]))
		}
		flags, pos, ksize, vsize := fields[0], fields[1], fields[2], fields[3]
		if kind == isBranch {
			flags, pos, ksize, vsize = 0, fields[0], fields[1], 0
		}
		if pos+ksize+vsize > uint64(len(e)) {
			return fmt.Errorf("element %d reaches out of it: %w", i, errTree)
		}
		key, value := e[pos:pos+ksize], e[pos+ksize:pos+ksize+vsize]
		if i > 0 && bytes.Compare(before, key) >= 0 {
			return fmt.Errorf("element %d is not in order: %w", i, errTree)
		}
		before = key
		var err error
		switch {
		case kind == isBranch:
			err = t.walk(binary.LittleEndian.Uint64(e[8:]))
		case flags&isBucket != 0:
			err = t.bucket(value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bucket continues with the page that the value of a bucket refers to.
func (t *tree) bucket(value []byte) error {
	if len(value) < boltHeader {
		return fmt.Errorf("a bucket of %d bytes: %w", len(value), errTree)
	}
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		return t.walk(root)
	}
	return t.elements(value[boltHeader:]) // a small bucket is inside its value
}

// free checks that no page is both free and in use.
func (t *tree) free(id uint64) error {
	p, err := t.take(id)
	if err != nil {
		return fmt.Errorf("the list of free pages: %w", err)
	}
	n, ids := uint64(binary.LittleEndian.Uint16(p[10:])), p[boltHeader:]
	if n == countedInside {
		n, ids = binary.LittleEndian.Uint64(ids), ids[8:]
	}
	if binary.LittleEndian.Uint16(p[8:]) != isFree || n > uint64(len(ids)/8) {
		return fmt.Errorf("page %d is no list of free pages: %w", id, errTree)
	}
	for i := range n {
		if f := binary.LittleEndian.Uint64(ids[8*i:]); f >= t.end || t.seen[f] {
			return fmt.Errorf("page %d is free and in use: %w", f, errTree)
		}
	}
	return nil
}
