package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// wireReader counts the bytes of a body as sent, without framing, and puts the idle timer
// back with every byte. Its limit is for a body that shares its connection; see wireConn.
type wireReader struct {
	r    io.Reader
	n    int64
	most int64
	// decoded is how much came of it; nil = it is not encoded. What costs more than it brings is no content: the
	// members of gzip and frames of zstd that hold nothing also cost work.
	decoded func() int
	over    *LimitError // it was hit: decoders do not all say why they end
	idle    *time.Timer
	wait    time.Duration
}

func (w *wireReader) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 {
		w.n += int64(n)
		w.idle.Reset(w.wait)
	}
	if w.n > w.most {
		w.over = &LimitError{LimitWire, w.most}
	} else if w.decoded != nil && w.n > overheadFloor+2*int64(w.decoded()) {
		w.over = &LimitError{LimitOverhead, overheadFloor}
	}
	if w.over != nil {
		return 0, w.over
	}
	return n, err
}

// Memory of bodies. Up to smallBody they need no room: the workers bound those. Above that a body asks for all that it
// can come to need, at once: asked for bit by bit, many would each hold a part and wait for the rest.
const (
	smallBody = 256 << 10
	growth    = 2 // a buffer that grows is there twice for a moment
)

// waitFor is room, while the silence of the connection is not the site's.
func (w *wireReader) waitFor(ctx context.Context, room Room, need int64) (keep func(int64), err error) {
	w.idle.Stop()
	defer w.idle.Reset(w.wait)
	return room(ctx, need)
}

// body reads and decodes a body up to limit bytes. truncated is LimitBody when
// there was more.
func (c *Client) body(ctx context.Context, wire *wireReader, h http.Header, limit int64, room Room) (body []byte,
	truncated string, err error) {
	defer func() {
		if err != nil && wire.over != nil {
			body, truncated, err = nil, "", wire.over
		}
	}()
	var buf bytes.Buffer
	if h.Get("Content-Encoding") != "" {
		wire.decoded = buf.Len
	}
	r, done, err := decoded(wire, h)
	if err != nil {
		return nil, "", err
	}
	defer done()
	if n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64); err == nil && n > 0 {
		buf.Grow(int(min(n, limit, 64<<10)) + bytes.MinRead) // no more on the site's word alone
	}
	for int64(buf.Len()) <= limit {
		if room != nil && buf.Len() >= smallBody {
			keep, err := wire.waitFor(ctx, room, growth*limit)
			if err != nil {
				return nil, "", err
			}
			defer func() { keep(int64(buf.Cap())) }()
			room = nil
		}
		step := min(expansionFloor, limit+1-int64(buf.Len()))
		if room != nil {
			step = min(step, smallBody)
		}
		n, err := io.CopyN(&buf, r, step)
		if errors.Is(err, io.EOF) && n < step {
			return buf.Bytes(), "", nil
		}
		if err != nil {
			return nil, "", fmt.Errorf("body: %w", err)
		}
		if int64(buf.Len()) >= expansionFloor && int64(buf.Len())/max(wire.n, 1) > c.o.MaxExpansion {
			return nil, "", &LimitError{LimitExpansion, c.o.MaxExpansion}
		}
	}
	return buf.Bytes()[:limit], LimitBody, nil
}

// decoded undoes the Content-Encoding of h, the last one applied first.
func decoded(r io.Reader, h http.Header) (io.Reader, func(), error) {
	var closers []func()
	done := func() {
		for _, f := range closers {
			f()
		}
	}
	layers := 0
	all := strings.Split(strings.ToLower(strings.Join(h.Values("Content-Encoding"), ",")), ",")
	for i := len(all) - 1; i >= 0; i-- {
		name := strings.TrimSpace(all[i])
		if name == "" || name == "identity" {
			continue
		}
		if layers++; layers > maxEncodings {
			done()
			return nil, nil, &LimitError{LimitEncodings, maxEncodings}
		}
		switch name {
		case "gzip", "x-gzip":
			z, err := gzip.NewReader(r)
			if err != nil {
				done()
				if errors.Is(err, io.EOF) { // an empty body, encoded or not, is empty
					return bytes.NewReader(nil), func() {}, nil
				}
				return nil, nil, fmt.Errorf("gzip: %w", err)
			}
			r = z
		case "br":
			r = brotli.NewReader(r)
		case "zstd":
			z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow),
				zstd.WithDecoderLowmem(true))
			if err != nil {
				done()
				return nil, nil, fmt.Errorf("zstd: %w", err)
			}
			closers = append(closers, z.Close)
			r = z
		default:
			done()
			return nil, nil, fmt.Errorf("unknown content encoding %.40q", name)
		}
	}
	return r, done, nil
}
