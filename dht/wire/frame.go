package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/proto"
)

// FrameVersion is the version of the framing, the first byte of every frame.
const FrameVersion = 1

// Parts of the head of a frame, and the size above which a body is compressed.
const (
	flagZstd     = 1 << 0
	compressOver = 512 // bytes; for less, zstd's own frame is as large as the gain
	headLen      = 2   // version and flags
)

// codecs holds the coders. They are made once, at first use, because making them is expensive.
// EncodeAll and DecodeAll are safe for concurrent use.
type codecs struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

var zcodecs = sync.OnceValues(func() (codecs, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2),
		zstd.WithWindowSize(1<<20))
	if err != nil {
		return codecs{}, err
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(MaxFrame), zstd.WithDecoderMaxWindow(MaxFrame),
		zstd.WithDecoderConcurrency(2))
	return codecs{enc, dec}, err
})

// WriteRequest sends m as one frame and returns the bytes written. It checks m like the reader,
// so that an error shows at its origin.
func WriteRequest(w io.Writer, m *Request) (int, error) {
	if err := m.Validate(); err != nil {
		return 0, fmt.Errorf("write request: %w", err)
	}
	n, err := writeMessage(w, m)
	if err != nil {
		return n, fmt.Errorf("write request: %w", err)
	}
	return n, nil
}

// WriteResponse sends m as one frame and returns the bytes written.
func WriteResponse(w io.Writer, m *Response) (int, error) {
	if err := m.Validate(); err != nil {
		return 0, fmt.Errorf("write response: %w", err)
	}
	n, err := writeMessage(w, m)
	if err != nil {
		return n, fmt.Errorf("write response: %w", err)
	}
	return n, nil
}

// ReadRequest reads one frame, checks it against every limit, and returns the bytes read. It
// reads nothing beyond the frame. The error is io.EOF itself when r ends before the first byte.
func ReadRequest(r io.Reader) (*Request, int, error) {
	var m Request
	n, err := readMessage(r, &m)
	if err == io.EOF {
		return nil, n, err
	}
	if err == nil {
		err = m.Validate()
	}
	if err != nil {
		return nil, n, fmt.Errorf("read request: %w", err)
	}
	return &m, n, nil
}

// ReadResponse is ReadRequest for the response.
func ReadResponse(r io.Reader) (*Response, int, error) {
	var m Response
	n, err := readMessage(r, &m)
	if err == io.EOF {
		return nil, n, err
	}
	if err == nil {
		err = m.Validate()
	}
	if err != nil {
		return nil, n, fmt.Errorf("read response: %w", err)
	}
	return &m, n, nil
}

// writeMessage sends m as one frame with one Write, and returns the bytes written. It does not
// validate m.
func writeMessage(w io.Writer, m proto.Message) (int, error) {
	body, err := proto.Marshal(m)
	if err != nil {
		return 0, err
	}
	frame, err := appendFrame(nil, body)
	if err != nil {
		return 0, err
	}
	return w.Write(frame)
}

// readMessage reads one frame into m and returns the bytes read. It scans the body before it
// decodes it. It does not validate m.
func readMessage(r io.Reader, m proto.Message) (int, error) {
	body, n, err := readFrame(r)
	if err != nil {
		return n, err
	}
	if err := scan(body, m.ProtoReflect().Descriptor()); err != nil {
		return n, err
	}
	if err := proto.Unmarshal(body, m); err != nil {
		return n, fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	return n, nil
}

// appendFrame appends the frame of body to dst.
func appendFrame(dst, body []byte) ([]byte, error) {
	if len(body) > MaxFrame {
		return nil, over("frame", len(body), MaxFrame)
	}
	var flags byte
	if len(body) > compressOver {
		z, err := zcodecs()
		if err != nil {
			return nil, err
		}
		// Media and random bytes do not become shorter, and are sent as they are.
		if c := z.enc.EncodeAll(body, make([]byte, 0, len(body))); len(c) < len(body) {
			body, flags = c, flagZstd
		}
	}
	dst = slices.Grow(dst, binary.MaxVarintLen32+headLen+len(body))
	dst = binary.AppendUvarint(dst, uint64(headLen+len(body)))
	dst = append(dst, FrameVersion, flags)
	return append(dst, body...), nil
}

// readFrame reads one frame and returns its decompressed body and the bytes read. Memory grows
// with the bytes that arrive, not with the claimed length. Only the first 16 KiB, in which most
// frames fit, are allocated at once.
func readFrame(r io.Reader) (body []byte, n int, err error) {
	size, n, err := readLength(r)
	if err != nil {
		return nil, n, err
	}
	var buf bytes.Buffer
	buf.Grow(min(size, 16<<10) + bytes.MinRead)
	got, err := io.CopyN(&buf, r, int64(size))
	n += int(got)
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, n, err
	}
	b := buf.Bytes()
	if b[0] != FrameVersion {
		return nil, n, fmt.Errorf("frame version %d: %w", b[0], ErrVersion)
	}
	body = b[headLen:]
	// Unknown flags are refused, because they could change the meaning of the body.
	switch b[1] {
	case 0:
		return body, n, nil
	case flagZstd:
		body, err = decompress(body)
		return body, n, err
	}
	return nil, n, fmt.Errorf("flags %#x: %w", b[1], ErrFrame)
}

// readLength reads the varint byte by byte, so that it reads nothing beyond the frame.
func readLength(r io.Reader) (size, n int, err error) {
	var b [1]byte
	for shift := 0; ; shift += 7 {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			if n > 0 && err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return 0, n, err
		}
		n++
		size |= int(b[0]&0x7f) << shift
		if b[0] < 0x80 {
			break
		}
		// MaxFrame fits into four bytes, so that no overflow is possible.
		if shift == 21 {
			return 0, n, fmt.Errorf("length of five bytes: %w", ErrFrame)
		}
	}
	switch {
	// Each length has only one form.
	case n > 1 && b[0] == 0:
		return 0, n, fmt.Errorf("length not in shortest form: %w", ErrFrame)
	case size < headLen:
		return 0, n, fmt.Errorf("length %d: %w", size, ErrFrame)
	case size > MaxFrame+headLen:
		return 0, n, over("frame", size-headLen, MaxFrame)
	}
	return size, n, nil
}

// decompress returns the decoded body, of at most MaxFrame bytes.
func decompress(b []byte) ([]byte, error) {
	z, err := zcodecs()
	if err != nil {
		return nil, err
	}
	out, err := z.dec.DecodeAll(b, nil)
	if err != nil {
		// The decoder stops at its memory limit, which is MaxFrame.
		return nil, fmt.Errorf("decompress: %w: %v", ErrFrame, err)
	}
	if len(out) > MaxFrame {
		return nil, over("decompressed frame", len(out), MaxFrame)
	}
	return out, nil
}
