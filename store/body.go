package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/echo-node/echo-node/partition/strictjson"
)

// Encodings of a packed value: the second byte, after rowVersion.
const (
	packPlain byte = 1 // the bytes
	packZstd  byte = 2 // uvarint length of the bytes, then one zstd frame
)

// packer compresses and expands values. Safe for concurrent use.
type packer struct {
	enc  *zstd.Encoder
	decs sync.Pool
}

// packing is how many rows are compressed at once: more than there are
// processors, as one that waits for a processor keeps its encoder.
const packing = 8

func newPacker() (*packer, error) {
	// The fastest level: 5 % more bytes than the next one, which costs nearly thrice the time, the most of a
	// commit's.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(packing), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("store: zstd: %w", err)
	}
	return &packer{enc: enc}, nil
}

// pack is the value of a row: its version, its encoding and b.
func (p *packer) pack(b []byte) []byte {
	out := make([]byte, 0, len(b)/2+16)
	out = append(out, rowVersion, packZstd)
	out = binary.AppendUvarint(out, uint64(len(b)))
	out = p.enc.EncodeAll(b, out)
	if len(out) < len(b)+2 {
		return out
	}
	return append(append(out[:0], rowVersion, packPlain), b...)
}

// unpack undoes pack. It never expands to more than limit bytes, whatever the
// value claims: the claim is checked first and again against what came out.
func (p *packer) unpack(v []byte, limit int) ([]byte, error) {
	if len(v) < 2 || v[0] != rowVersion {
		return nil, errBadRow
	}
	body := v[2:]
	switch v[1] {
	case packPlain:
		if len(body) > limit {
			return nil, fmt.Errorf("%d bytes, at most %d: %w", len(body), limit, errBadRow)
		}
		return append([]byte(nil), body...), nil
	case packZstd:
		size, n := binary.Uvarint(body)
		if n <= 0 || size > uint64(limit) {
			return nil, fmt.Errorf("claims %d bytes, at most %d: %w", size, limit, errBadRow)
		}
		return p.expand(body[n:], int(size))
	}
	return nil, fmt.Errorf("encoding %d: %w", v[1], errBadRow)
}

func (p *packer) expand(frame []byte, size int) ([]byte, error) {
	// The header is checked before a byte is allocated: a frame that says more
	// than the row does is refused unread.
	var h zstd.Header
	if err := h.Decode(frame); err != nil || (h.HasFCS && h.FrameContentSize != uint64(size)) {
		return nil, fmt.Errorf("zstd frame: %w", errBadRow)
	}
	dec, ok := p.decs.Get().(*zstd.Decoder)
	if !ok {
		var err error
		dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(oldRecordBytes),
			zstd.WithDecoderMaxWindow(1<<20), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			return nil, fmt.Errorf("store: zstd: %w", err)
		}
	}
	defer p.decs.Put(dec)
	out, err := dec.DecodeAll(frame, make([]byte, 0, min(size, 32*len(frame)+1<<16)))
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) && cap(out) < size {
		out, err = dec.DecodeAll(frame, make([]byte, 0, size)) // truly compresses over 32 times
	}
	if err != nil || len(out) != size {
		return nil, fmt.Errorf("zstd frame: %w", errBadRow)
	}
	return out, nil
}

func (p *packer) packJSON(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return p.pack(b), nil
}

func (p *packer) encodeRecord(r *Record) ([]byte, error) {
	_, b, err := r.fit()
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return p.pack(b), nil
}

func (p *packer) decodeRecord(v []byte) (Record, error) {
	b, err := p.unpack(v, oldRecordBytes)
	if err != nil {
		return Record{}, fmt.Errorf("record: %w", err)
	}
	r, err := parseRecord(b)
	if err == nil && len(b) > MaxRecordBytes {
		r, _, err = r.fit()
	}
	return r, err
}

func parseRecord(b []byte) (Record, error) {
	var r Record
	if err := strictjson.Unmarshal(b, &r); err != nil {
		return Record{}, fmt.Errorf("record: %w: %w", errBadRow, err)
	}
	r.unload()
	if r.V != RecordVersion {
		return Record{}, fmt.Errorf("record: version %d, this program knows %d: %w", r.V, RecordVersion, errBadRow)
	}
	return r, nil
}
