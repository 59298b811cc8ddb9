package archive

import (
	"crypto/sha256"
	"errors"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// KeptBody is a body that is about to be stored.
type KeptBody struct {
	Sum  format.BodySum
	raw  []byte // nil when Row is set
	Row  []byte // packed, nil = not yet
	pack func([]byte) []byte
}

// value returns the row. It packs the body when that is not done yet.
func (b *KeptBody) value() []byte {
	if b.Row == nil {
		b.Row = b.pack(b.raw)
	}
	return b.Row
}

// size returns about the size of the row in bytes.
func (b *KeptBody) size() int {
	if b == nil {
		return 0
	}
	if b.Row == nil {
		return len(b.raw)
	}
	return len(b.Row)
}

// Kept brings c's Capture within its caps and prepares its body, before any lock is taken. It packs
// the body when the slice does not seem to have it.
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

// bodyUse is the change that a batch makes to the uses of one body.
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

// useBody notes that the capture n has the body sum.
func (t *Batch) useBody(n format.CaptureID, sum format.BodySum, body *KeptBody) {
	u, row := t.bodyUse(n, sum), string(n.Row())
	u.added[row] = true
	delete(u.removed, row)
	if body != nil {
		u.body = body
	}
}

// leaveBody notes that the capture n no longer has the body sum.
func (t *Batch) leaveBody(n format.CaptureID, sum format.BodySum) {
	u, row := t.bodyUse(n, sum), string(n.Row())
	u.removed[row] = true
	delete(u.added, row)
}

// endBodies writes the rows of the bodies that the batch used or left. A body without uses is
// deleted.
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
