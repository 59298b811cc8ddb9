package archive

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/engine"
	"github.com/echo-node/echo-node/store/format"
)

// Captures calls fn for the stored captures of k in sl (0: its hash slice), until fn returns false.
// Versions come before revisits, each in order of time. part is the position to continue from:
// captures up to and including it are skipped; nil starts at the first. If a body is no longer
// stored, the capture comes without it.
func (s *Archive) Captures(sl partition.Slice, k partition.Key, part []byte,
	fn func(part []byte, c store.Capture) (bool, error)) error {
	if err := s.engine.Enter(); err != nil {
		return err
	}
	defer s.engine.Leave()
	id := s.engine.IDIn(sl, k)
	prefix := format.CaptureKey(id, k)
	lower := prefix
	if len(part) > 0 {
		lower = append(append(bytes.Clone(prefix), part...), 0)
	}
	err := s.engine.Scan(lower, format.After(prefix), func(key, value []byte) (bool, error) {
		_, class, at, err := format.SplitCapture(key[len(prefix)-len(k)-1:])
		if err != nil {
			return false, err
		}
		cid := format.CaptureID{SiteID: id, Key: k, Class: class, At: at}
		c, sum, err := s.engine.Packer.DecodeCapture(cid, value)
		if err != nil {
			return false, err
		}
		if sum != "" {
			v, err := s.engine.Get(format.BodyKey(id.Slice, sum))
			if err == nil {
				c.Body, err = s.engine.Packer.Unpack(v, store.MaxBodyBytes)
			}
			if engine.IgnoreAbsent(err) != nil {
				return false, fmt.Errorf("body: %w", err)
			}
		}
		return fn(cid.Part(), c)
	})
	if err != nil {
		return fmt.Errorf("store: captures of %s: %w", k, err)
	}
	return nil
}

// Visit writes the capture of c's visit, and the version that ends with it. It is called before the
// record is written. body is the body of c.Capture. Most visits are the first one of a Key. They
// cost only the lookup that finds no record, because captures exist only together with a record.
func (t *Batch) Visit(id format.SiteID, c store.Commit, body *KeptBody) error {
	r := c.Record
	if r == nil && (c.Capture == nil || c.Capture.Revisit == "") {
		return nil
	}
	had, err := t.s.engine.Get(format.KeyRow(format.TabRecord, id, c.Key))
	if engine.IgnoreAbsent(err) != nil {
		return err
	}
	v := visiting{t: t, id: id, key: c.Key}
	var old *store.Record
	if err == nil {
		now, err := t.s.engine.Packer.DecodeRecord(had)
		if err != nil {
			return err
		}
		if old = &now; v.load() != nil {
			return v.err
		}
	}
	if c.Key.Kind() == partition.KindFile { // fetched once: it has no versions
		if err := v.forget(); err != nil {
			return err
		}
		v.names, v.last, old = nil, nil, nil
	}
	switch {
	case r == nil && old == nil:
		return nil // not modified, but there is no earlier version
	case r != nil && !r.Archived():
		return v.forget()
	case r != nil && old != nil && !old.Shows(r) && old.Archived() && (v.last == nil || !v.last.Matches(old)):
		v.put(store.Capture{At: old.FetchedAt, Status: old.Status, Digest: old.Digest, Redirect: old.Redirect,
			Peer:   old.Peer,
			Record: old}, nil)
	}
	var now store.Capture
	if c.Capture != nil {
		now = *c.Capture
	}
	if now.Record = nil; now.At.IsZero() {
		now.At = c.Now
	}
	if r != nil {
		now.At, now.Peer, now.Status, now.Digest, now.Redirect, now.Revisit = r.FetchedAt, r.Peer, r.Status, r.Digest,
			r.Redirect, ""
		if old != nil && old.Shows(r) && (v.last != nil && v.last.Matches(r) || len(now.Response) == 0) {
			now.Revisit = store.Identical
		}
	}
	switch {
	case now.Revisit != "":
		now.Body, now.Cut, now.Of = nil, false, time.Time{}
		if v.last != nil && (r == nil || v.last.Matches(r)) {
			now.Of = v.last.At
		}
		v.put(now, nil)
	case len(now.Response) > 0: // else the record is stored when the version ends
		v.put(now, body)
	}
	return v.trim()
}

// visiting is what a visit does to the captures of a Key.
type visiting struct {
	t     *Batch
	id    format.SiteID
	key   partition.Key
	names []format.CaptureID // in order
	last  *store.Capture     // the newest version before the visit, without its body
	err   error              // the first error
}

// load reads the captures that exist.
func (v *visiting) load() error {
	if v.names, v.err = v.t.CaptureNames(v.id, v.key); v.err != nil {
		return v.err
	}
	for i := len(v.names) - 1; i >= 0 && v.last == nil; i-- {
		if n := v.names[i]; n.Class == format.ClassVersion {
			var b []byte
			if b, v.err = v.t.s.engine.Get(n.Row()); v.err != nil {
				return v.err
			}
			var c store.Capture
			if c, _, v.err = v.t.s.engine.Packer.DecodeCapture(n, b); v.err != nil {
				return v.err
			}
			v.last = &c
		}
	}
	return nil
}

// forget drops all captures: the site asks not to archive the page, and this includes older
// versions.
func (v *visiting) forget() error {
	for _, n := range v.names {
		if err := v.t.DropCapture(n); err != nil {
			return err
		}
	}
	return nil
}

// put writes c as the newest capture, even if the clock was set back.
func (v *visiting) put(c store.Capture, body *KeptBody) {
	c.Key = v.key
	n := format.CaptureID{SiteID: v.id, Key: v.key, Class: format.ClassOf(&c), At: max(c.At.UnixMicro(),
		format.MinTime)}
	for _, had := range v.names {
		n.At = max(n.At, had.At+1)
	}
	if v.err != nil || n.At > format.MaxTime { // there is no later time
		return
	}
	var sum format.BodySum
	if body != nil {
		sum = body.Sum
	}
	var value []byte
	if value, v.err = v.t.s.engine.Packer.EncodeCapture(&c, sum); v.err != nil {
		return
	}
	v.names = append(v.names, n)
	v.err = v.t.SetCapture(n, value, sum, body)
}

// trim keeps the newest captures of each class.
func (v *visiting) trim() error {
	if v.err != nil {
		return v.err
	}
	format.SortCaptures(v.names)
	left := map[byte]int{format.ClassVersion: store.MaxVersions, format.ClassRevisit: store.MaxRevisits}
	if v.key.Kind() == partition.KindFile {
		left = map[byte]int{format.ClassVersion: 1}
	}
	for i := len(v.names) - 1; i >= 0; i-- {
		if left[v.names[i].Class]--; left[v.names[i].Class] < 0 {
			if err := v.t.DropCapture(v.names[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// TrimCaptures keeps the newest captures of k in each class.
func (t *Batch) TrimCaptures(id format.SiteID, k partition.Key) error {
	v := visiting{t: t, id: id, key: k}
	v.names, v.err = t.CaptureNames(id, k)
	return v.trim()
}

// SetCapture writes a capture row as it is.
func (t *Batch) SetCapture(n format.CaptureID, value []byte, sum format.BodySum, body *KeptBody) error {
	row := n.Row()
	size := len(value)
	if sum != "" {
		t.useBody(n, sum, body)
		size += body.size()
	}
	t.Captured[string(row)] = true
	t.Name(n.Slice, format.NameCapture, row[9:], size, time.Time{})
	return t.Rows.Set(row, value, nil)
}

// DropCapture deletes a capture, and its body if no other capture has it. The log names the
// capture, so replicas see that its row is gone.
func (t *Batch) DropCapture(n format.CaptureID) error {
	row := n.Row()
	if there, err := t.hasCapture(n); err != nil || !there {
		return err
	}
	v, err := t.s.engine.Get(row)
	if engine.IgnoreAbsent(err) != nil {
		return err
	}
	if err == nil {
		_, sum, err := t.s.engine.Packer.DecodeCapture(n, v)
		if err != nil {
			return err
		}
		if sum != "" {
			t.leaveBody(n, sum)
		}
	}
	for id, u := range t.bodies { // a body that this batch put
		if id.Slice == n.Slice && u.added[string(row)] {
			t.leaveBody(n, id.Sum)
		}
	}
	t.Captured[string(row)] = false
	t.Name(n.Slice, format.NameCapture, row[9:], 0, time.Time{})
	return t.Rows.Delete(row, nil)
}

// hasCapture reports whether the capture n exists, as this batch leaves it so far.
func (t *Batch) hasCapture(n format.CaptureID) (bool, error) {
	row := n.Row()
	if put, ok := t.Captured[string(row)]; ok {
		return put, nil
	}
	_, err := t.s.engine.Get(row)
	return err == nil, engine.IgnoreAbsent(err)
}

// CaptureNames returns the captures of k as this batch leaves them so far, in order.
func (t *Batch) CaptureNames(id format.SiteID, k partition.Key) (out []format.CaptureID, err error) {
	prefix := format.CaptureKey(id, k)
	add := func(row []byte) error {
		_, class, at, err := format.SplitCapture(row[len(prefix)-len(k)-1:])
		out = append(out, format.CaptureID{SiteID: id, Key: k, Class: class, At: at})
		return err
	}
	err = t.s.engine.Scan(prefix, format.After(prefix), func(key, _ []byte) (bool, error) {
		if _, touched := t.Captured[string(key)]; touched {
			return true, nil
		}
		return true, add(key)
	})
	for row, put := range t.Captured {
		if err == nil && put && strings.HasPrefix(row, string(prefix)) {
			err = add([]byte(row))
		}
	}
	format.SortCaptures(out)
	return out, err
}
