package fetch

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
)

// Open asks for what has no end: the answer comes with its body still to be read, not compressed, for the caller to cap, to
// watch for silence and to close. Its header is capped, private addresses are guarded, redirects are answers, as of every
// request; ctx ends it, and nothing else does. No gap is kept between requests to an address.
func (c *Client) Open(ctx context.Context, r Request) (*http.Response, error) {
	u, err := url.Parse(r.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("fetch: not an http address: %.100q", r.URL)
	}
	if err := c.NeedsContact(u.Hostname()); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("fetch: open: %w", err)
	}
	c.header(req, r)
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("fetch: open: %w", err)
	}
	return resp, nil
}
