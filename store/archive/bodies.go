package archive

import (
	"crypto/sha256"
	"errors"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// KeptBody is a body on its way into the store.
type KeptBody struct {
	Sum  format.BodySum
	raw  []byte // nil when value is there
	Row  []byte // packed, nil = not yet
	pack func([]byte) []byte
}

// value is the row.
func (b *KeptBody) value() []byte {
	if b.Row == nil {
		b.Row = b.pack(b.raw)
	}
	return b.Row
}

// size is about that of the row.
func (b *KeptBody) size() int {
	if b == nil {
		return 0
	}
	if b.Row == nil {
		return len(b.raw)
	}
	return len(b.Row)
}

// Kept brings c's Capture within its caps and makes its body ready, before any
// lock is taken: one that seems to be new is packed here.
func (s *Archive) Kept(sl partition.Slice, c *store.Commit) (*KeptBody, error) {
	if c.Capture == nil {
		return nil, nil
	}
	now := *c.Capture
	now.Clip()
	if c.Capture = &now; len(now.Body) == 0 {
		return nil, nil
	}
	sum := sha256.Sum256(now.Body)
	b := &KeptBody{Sum: format.BodySum(sum[:]), raw: now.Body, pack: s.engine.Packer.Pack}
	_, err := s.engine.Get(format.BodyKey(sl, b.Sum))
	if errors.Is(err, store.ErrNotExist) {
		b.value()
		err = nil
	}
	return b, err
}

// bodyUse is what a batch does to the uses of one body.
type bodyUse struct {
	added, removed map[string]bool // rows of captures
	body           *KeptBody
}

func (t *Batch) bodyUse(n format.CaptureID, sum format.BodySum) *bodyUse {
	id := format.BodyID{Slice: n.Slice, Sum: sum}
	u := t.bodies[id]
	if u == nil {
		u = &bodyUse{added: map[string]bool{}, removed: map[string]bool{}}
		t.bodies[id] = u
	}
	return u
}

func (t *Batch) useBody(n format.CaptureID, sum format.BodySum, body *KeptBody) {
	u, row := t.bodyUse(n, sum), string(n.Row())
	u.added[row] = true
	delete(u.removed, row)
	if body != nil {
		u.body = body
	}
}

func (t *Batch) leaveBody(n format.CaptureID, sum format.BodySum) {
	u, row := t.bodyUse(n, sum), string(n.Row())
	u.removed[row] = true
	delete(u.added, row)
}

// endBodies writes the rows of the bodies that the batch took up or left.
func (t *Batch) endBodies() error {
	for id, u := range t.bodies {
		used := len(u.added) > 0
		if !used {
			prefix := append(format.SlicePrefix(format.TabUse, id.Slice), id.Sum...)
			err := t.s.engine.Scan(prefix, format.After(prefix), func(key, _ []byte) (bool, error) {
				used = !u.removed[string(append(format.SlicePrefix(format.TabCapture, id.Slice), key[len(prefix):]...))]
				return !used, nil
			})
			if err != nil {
				return err
			}
		}
		for row := range u.removed {
			_ = t.Rows.Delete(format.UseKey(id.Slice, id.Sum, []byte(row)), nil)
		}
		for row := range u.added {
			_ = t.Rows.Set(format.UseKey(id.Slice, id.Sum, []byte(row)), nil, nil)
		}
		_, err := t.s.engine.Get(format.BodyKey(id.Slice, id.Sum))
		switch {
		case engine.IgnoreAbsent(err) != nil:
			return err
		case err == nil && !used:
			_ = t.Rows.Delete(format.BodyKey(id.Slice, id.Sum), nil)
		case err != nil && used && u.body != nil:
			_ = t.Rows.Set(format.BodyKey(id.Slice, id.Sum), u.body.value(), nil)
		}
	}
	return nil
}
