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

// wireReader counts the bytes of a body as sent, without framing, and restarts the idle timer with
// every read. Its limit is for a body that shares its connection; see wireConn.
type wireReader struct {
	r    io.Reader
	n    int64
	most int64
	// decoded returns the number of decoded bytes so far. It is nil if the body is not encoded.
	// Gzip members and zstd frames without content cost work too, so they have a limit.
	decoded func() int
	// over is the limit that was hit. Not every decoder reports why its input ended.
	over *LimitError
	idle *time.Timer
	wait time.Duration
}

// Read implements io.Reader. It fails with a LimitError when the body exceeds a limit.
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

// Memory of bodies. Up to smallBody, a body needs no room, because the number of workers bounds
// those bodies. Above that, it asks once for all the room it may need. With small requests, many
// bodies could each hold a part and wait for the rest.
const (
	smallBody = 256 << 10
	growth    = 2 // while a buffer grows, the old and the new one exist
)

// waitFor waits for room. Meanwhile it stops the idle timer, because the site does not cause this
// silence.
func (w *wireReader) waitFor(ctx context.Context, room Room, need int64) (keep func(int64), err error) {
	w.idle.Stop()
	defer w.idle.Reset(w.wait)
	return room(ctx, need)
}

// body reads and decodes a body up to limit bytes. truncated is LimitBody if the body was longer.
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
		// the site's claim alone reserves no more
		buf.Grow(int(min(n, limit, 64<<10)) + bytes.MinRead)
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

// decoded returns a reader that undoes the Content-Encoding of h, the last encoding first. The
// caller must call the returned function when it has read the body.
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
				if errors.Is(err, io.EOF) { // an empty body stays empty, encoded or not
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
