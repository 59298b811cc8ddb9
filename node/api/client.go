package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/echo-node/echo-node/node/safetext"
	"github.com/echo-node/echo-node/partition"
)

// ErrNoPeer is wrapped when nothing listens at the address.
var ErrNoPeer = errors.New("no peer answers")

// Problem is an error response of a peer (RFC 9457).
type Problem struct {
	Type     string  `json:"type"`
	Title    string  `json:"title"`
	Status   int     `json:"status"`
	Detail   string  `json:"detail"`
	Instance string  `json:"instance"`
	Faults   []Fault `json:"errors"`
}

// Fault is one error in a request.
type Fault struct {
	Message  string `json:"message"`
	Location string `json:"location"` // query.limit, body
	Value    any    `json:"value"`
}

// Error returns the problem as one readable line.
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.Detail)
	if p.Detail == "" {
		fmt.Fprintf(&b, "%d %s", p.Status, p.Title)
	}
	for i, f := range p.Faults {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		b.WriteString(sep)
		if _, name, ok := strings.Cut(f.Location, "."); ok {
			b.WriteString(name + " ")
			if f.Value != nil && f.Value != "" {
				fmt.Fprintf(&b, "%q ", fmt.Sprint(f.Value))
			}
		}
		b.WriteString(f.Message)
	}
	return safetext.Line(b.String())
}

// Is lets errors.Is find the error that a Peer's function wrapped.
func (p *Problem) Is(target error) bool {
	switch target {
	case ErrInvalid:
		return p.Status == http.StatusUnprocessableEntity || p.Status == http.StatusBadRequest
	case ErrNotFound:
		return p.Status == http.StatusNotFound
	case ErrUnavailable:
		return p.Status == http.StatusServiceUnavailable
	case ErrNotBuilt:
		return p.Status == http.StatusNotImplemented
	}
	return false
}

// Client sends requests to one peer's API. It is safe for concurrent use.
type Client struct {
	base  string // http://HOST:PORT, no slash at the end
	token string
	http  *http.Client
}

// NewClient returns a Client of the peer at addr, which is HOST:PORT or a URL. token is "" when
// the peer has none. NewClient sends nothing.
func NewClient(addr, token string) (*Client, error) {
	base := addr
	if !strings.Contains(addr, "://") {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return nil, fmt.Errorf("api address %q is neither HOST:PORT nor a URL", addr)
		}
		base = "http://" + addr
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" ||
		u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("api address %q is neither HOST:PORT nor a URL as http://127.0.0.1:7700", addr)
	}
	return &Client{
		base: u.Scheme + "://" + u.Host, token: token,
		http: &http.Client{
			// No proxy, because the Client talks to the user's own peer.
			Transport: &http.Transport{
				DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
				TLSHandshakeTimeout: 10 * time.Second,
				IdleConnTimeout:     30 * time.Second,
			},
			// The token is sent only to the address that the user named.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status returns the peer's state.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return fetch[Status](ctx, c, "status", nil)
}

// Peers returns the members of the swarm.
func (c *Client) Peers(ctx context.Context) ([]PeerInfo, error) {
	v, err := fetch[peerList](ctx, c, "peers", nil)
	return v.Peers, err
}

// Owner returns the peers that crawl k.
func (c *Client) Owner(ctx context.Context, k partition.Key) (Owner, error) {
	return fetch[Owner](ctx, c, "owner", url.Values{"key": {string(k)}})
}

// Show returns what the swarm knows of k.
func (c *Client) Show(ctx context.Context, k partition.Key) (Shown, error) {
	return fetch[Shown](ctx, c, "records", url.Values{"key": {string(k)}})
}

// Query searches the whole swarm.
func (c *Client) Query(ctx context.Context, q Query) (Answer, error) {
	return fetch[Answer](ctx, c, "query", q.Values())
}

// Copies returns the texts that say the same as the record of k, or as that post of k.
func (c *Client) Copies(ctx context.Context, k partition.Key, post string) (CopyGroup, error) {
	v := url.Values{"key": {string(k)}}
	put(v, "post", post)
	return fetch[CopyGroup](ctx, c, "copies", v)
}

// Recent returns at most n records, 1 to 100, that the peer fetched last.
func (c *Client) Recent(ctx context.Context, n int) ([]Hit, error) {
	v, err := fetch[recentList](ctx, c, "recent", url.Values{"n": {fmt.Sprint(n)}})
	return v.Records, err
}

// Errors returns the Keys that ended without a record or are being retried.
func (c *Client) Errors(ctx context.Context) ([]Failure, error) {
	v, err := fetch[failureList](ctx, c, "errors", nil)
	return v.Errors, err
}

// Map returns the GeoJSON of the members and what they own.
func (c *Client) Map(ctx context.Context) (json.RawMessage, error) {
	return fetch[json.RawMessage](ctx, c, "map", nil)
}

// Gaps returns what is known to be missing in the whole swarm.
func (c *Client) Gaps(ctx context.Context, q GapQuery) (GapAnswer, error) {
	v := filterValues(Export{Site: q.Site, Since: q.Since, Until: q.Until, Cursor: q.Cursor})
	if q.Limit > 0 {
		v.Set("limit", fmt.Sprint(q.Limit))
	}
	if q.Local {
		v.Set("local", "true")
	}
	return fetch[GapAnswer](ctx, c, "gaps", v)
}

// Seed gives the swarm seeds, Keys or plain URLs, in requests of at most 10,000. It returns one
// answer for each seed, in order. After an error it returns the answers received so far.
func (c *Client) Seed(ctx context.Context, seeds []string) ([]SeedAnswer, error) {
	return c.seed(ctx, seeds, false)
}

// SeedAgain is like Seed, and the swarm also looks now at seeds that it knows.
func (c *Client) SeedAgain(ctx context.Context, seeds []string) ([]SeedAnswer, error) {
	return c.seed(ctx, seeds, true)
}

func (c *Client) seed(ctx context.Context, seeds []string, again bool) ([]SeedAnswer, error) {
	answers := make([]SeedAnswer, 0, len(seeds))
	for len(seeds) > 0 {
		n, size := 0, 0
		for n < len(seeds) && n < maxSeedKeys && size < maxSeedBytes-12*maxKeyText {
			size += 6*len(seeds[n]) + 3 // quotes, a comma, and at worst every byte escaped
			n++
		}
		body, err := json.Marshal(seedBody{Keys: seeds[:n], Again: again})
		if err != nil {
			return answers, fmt.Errorf("seed: %w", err)
		}
		v, err := ask[seedList](ctx, c, http.MethodPost, "/api/v1/seeds", body)
		if err != nil {
			return answers, err
		}
		answers, seeds = append(answers, v.Answers...), seeds[n:]
	}
	return answers, nil
}

// Ready returns nil when the peer can serve.
func (c *Client) Ready(ctx context.Context) error {
	res, err := c.send(ctx, http.MethodGet, "/readyz", nil)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

func fetch[T any](ctx context.Context, c *Client, name string, v url.Values) (T, error) {
	path := "/api/v1/" + name
	if len(v) > 0 {
		path += "?" + v.Encode()
	}
	return ask[T](ctx, c, http.MethodGet, path, nil)
}

func ask[T any](ctx context.Context, c *Client, method, path string, body []byte) (T, error) {
	var v T
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	res, err := c.send(ctx, method, path, body)
	if err != nil {
		return v, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return v, fmt.Errorf("answer of %s: %w", c.base, err)
	case len(b) > maxAnswer:
		return v, fmt.Errorf("answer of %s is longer than %d bytes", c.base, maxAnswer)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("what answers at %s is not an echo-node peer: %w", c.base, err)
	}
	return v, nil
}

// send returns a response with status 200, whose body the caller closes, or an error.
func (c *Client) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.base, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	return nil, errors.Join(c.problem(res), res.Body.Close())
}

func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("ask %s: %w", c.base, ctx.Err())
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return fmt.Errorf("%w at %s; is `echo-node run` running there? (%w)", ErrNoPeer, c.base, dial)
	}
	return fmt.Errorf("ask %s: %w", c.base, err)
}

// problem reads a response with another status than 200.
func (c *Client) problem(res *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(res.Body, maxProblem))
	if err != nil {
		return fmt.Errorf("answer of %s: %w", c.base, err)
	}
	p := &Problem{}
	if json.Unmarshal(b, p) != nil || p.Status == 0 {
		return fmt.Errorf("what answers at %s is not an echo-node peer: it says %s", c.base, res.Status)
	}
	if p.Status == http.StatusUnauthorized {
		return fmt.Errorf("%w (give it with --api-token-file; without that flag the peer writes one to api.token in its data directory while it runs)", p)
	}
	return p
}
