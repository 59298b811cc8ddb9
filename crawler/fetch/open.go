package fetch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
)

// Open requests a response that has no end. The caller reads the body, limits it, watches for
// silence and closes it. The body is not compressed. As for every request, the header is limited,
// private addresses are refused and redirects are not followed. Only ctx ends the response. The
// connection waits for the turn of its address. There is no gap between requests.
func (c *Client) Open(ctx context.Context, r Request) (*http.Response, error) {
	u, err := url.Parse(r.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("fetch: not an http address: %.100q", r.URL)
	}
	if err := c.NeedsContact(u.Hostname()); err != nil {
		return nil, err
	}
	if err := c.PortOf(u); err != nil {
		return nil, fmt.Errorf("fetch: open: %w", err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	x := &exchange{c: c, limit: wireLimit(0), cancel: stop}
	resp, err := c.opened(ctx, x, r)
	if err != nil {
		err = fmt.Errorf("fetch: open: %w", cause(ctx, err))
		x.receipt.end()
		stop(nil)
		return nil, err
	}
	x.receipt.lift()
	resp.Body = &openBody{resp.Body, func() { x.receipt.end(); stop(nil) }}
	return resp, nil
}

// opened sends the request and returns the response.
func (c *Client) opened(ctx context.Context, x *exchange, r Request) (*http.Response, error) {
	trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { x.got(i.Conn) }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodGet, r.URL, nil)
	if err != nil {
		return nil, err
	}
	c.header(req, r)
	req.Header.Set("Accept-Encoding", "identity")
	return c.http.Do(req)
}

// openBody is a body without an end and without a limit.
type openBody struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (b *openBody) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}
