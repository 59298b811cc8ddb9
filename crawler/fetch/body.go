package fetch

import (
	"bytes"
	"compress/gzip"
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

// wireReader counts what comes from the connection and puts the idle timer
// back with every byte.
type wireReader struct {
	r    io.Reader
	n    int64
	idle *time.Timer
	wait time.Duration
}

func (w *wireReader) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 {
		w.n += int64(n)
		w.idle.Reset(w.wait)
	}
	return n, err
}

// body reads and decodes a body up to limit bytes. truncated is LimitBody when
// there was more.
func (c *Client) body(wire *wireReader, h http.Header, limit int64) (body []byte, truncated string, err error) {
	r, done, err := decoded(wire, h)
	if err != nil {
		return nil, "", err
	}
	defer done()
	var buf bytes.Buffer
	if n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64); err == nil && n > 0 {
		buf.Grow(int(min(n, limit, 64<<10)) + bytes.MinRead) // no more on the site's word alone
	}
	for int64(buf.Len()) <= limit {
		step := min(expansionFloor, limit+1-int64(buf.Len()))
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
			z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow), zstd.WithDecoderLowmem(true))
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
