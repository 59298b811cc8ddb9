package format

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/echo-node/echo-node/partition/strictjson"
	"github.com/echo-node/echo-node/store"
)

// Encodings of a packed value: the second byte, after RowVersion.
const (
	packPlain byte = 1 // the bytes
	PackZstd  byte = 2 // uvarint length of the bytes, then one zstd frame
)

// Packer compresses and expands values. It is safe for concurrent use.
type Packer struct {
	enc  *zstd.Encoder
	decs sync.Pool
}

// packing is how many rows are compressed at the same time. It is more than the number of
// processors, because a call that waits for a processor keeps its encoder.
const packing = 8

// NewPacker returns a Packer.
func NewPacker() (*Packer, error) {
	// The fastest level gives 5 % more bytes than the next one, which takes nearly three times as
	// long. That would be most of the time of a commit.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(packing), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("store: zstd: %w", err)
	}
	return &Packer{enc: enc}, nil
}

// Pack returns the value of a row: its version, its encoding and b.
func (p *Packer) Pack(b []byte) []byte {
	out := make([]byte, 0, len(b)/2+16)
	out = append(out, RowVersion, PackZstd)
	out = binary.AppendUvarint(out, uint64(len(b)))
	out = p.enc.EncodeAll(b, out)
	if len(out) < len(b)+2 {
		return out
	}
	return append(append(out[:0], RowVersion, packPlain), b...)
}

// Unpack is the inverse of Pack. It never expands to more than limit bytes, whatever the value
// claims: it checks the claimed size first, and then the actual size.
func (p *Packer) Unpack(v []byte, limit int) ([]byte, error) {
	if len(v) < 2 || v[0] != RowVersion {
		return nil, ErrBadRow
	}
	body := v[2:]
	switch v[1] {
	case packPlain:
		if len(body) > limit {
			return nil, fmt.Errorf("%d bytes, at most %d: %w", len(body), limit, ErrBadRow)
		}
		return append([]byte(nil), body...), nil
	case PackZstd:
		size, n := binary.Uvarint(body)
		if n <= 0 || size > uint64(limit) {
			return nil, fmt.Errorf("claims %d bytes, at most %d: %w", size, limit, ErrBadRow)
		}
		return p.expand(body[n:], int(size))
	}
	return nil, fmt.Errorf("encoding %d: %w", v[1], ErrBadRow)
}

// expand decodes a zstd frame whose content must have exactly size bytes.
func (p *Packer) expand(frame []byte, size int) ([]byte, error) {
	// The header is checked before any allocation. A frame that claims another size than the row is
	// refused unread.
	var h zstd.Header
	if err := h.Decode(frame); err != nil || (h.HasFCS && h.FrameContentSize != uint64(size)) {
		return nil, fmt.Errorf("zstd frame: %w", ErrBadRow)
	}
	dec, ok := p.decs.Get().(*zstd.Decoder)
	if !ok {
		var err error
		dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(store.OldRecordBytes),
			zstd.WithDecoderMaxWindow(1<<20), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			return nil, fmt.Errorf("store: zstd: %w", err)
		}
	}
	defer p.decs.Put(dec)
	out, err := dec.DecodeAll(frame, make([]byte, 0, min(size, 32*len(frame)+1<<16)))
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) && cap(out) < size {
		out, err = dec.DecodeAll(frame, make([]byte, 0, size)) // compresses more than 32 times
	}
	if err != nil || len(out) != size {
		return nil, fmt.Errorf("zstd frame: %w", ErrBadRow)
	}
	return out, nil
}

// PackJSON returns v as JSON, packed.
func (p *Packer) PackJSON(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return p.Pack(b), nil
}

// EncodeRecord returns the row of r, cut to MaxRecordBytes of JSON (Record.Fit).
func (p *Packer) EncodeRecord(r *store.Record) ([]byte, error) {
	_, b, err := r.Fit()
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return p.Pack(b), nil
}

// DecodeRecord is the inverse of EncodeRecord. It cuts larger records of earlier versions.
func (p *Packer) DecodeRecord(v []byte) (store.Record, error) {
	b, err := p.Unpack(v, store.OldRecordBytes)
	if err != nil {
		return store.Record{}, fmt.Errorf("record: %w", err)
	}
	r, err := ParseRecord(b)
	if err == nil && len(b) > store.MaxRecordBytes {
		r, _, err = r.Fit()
	}
	return r, err
}

// ParseRecord decodes the JSON of a record. It refuses any other RecordVersion.
func ParseRecord(b []byte) (store.Record, error) {
	var r store.Record
	if err := strictjson.Unmarshal(b, &r); err != nil {
		return store.Record{}, fmt.Errorf("record: %w: %w", ErrBadRow, err)
	}
	r.Unload()
	if r.V != store.RecordVersion {
		return store.Record{}, fmt.Errorf("record: version %d, this program knows %d: %w", r.V, store.RecordVersion,
			ErrBadRow)
	}
	return r, nil
}
