package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Robots fetches the robots.txt of origin ("https://host:port") as RFC 9309 section 2.3 says. It
// follows up to five redirects. A 4xx status allows everything. A 5xx, a 429 or no response
// disallows everything until the next fetch. used counts the requests and bytes. err comes from
// gate or ctx, or is a *BusyError. After any other failure, rob has Status 0 and why is the cause.
func (c *Client) Robots(ctx context.Context, origin string, now time.Time,
	gate func(context.Context) error) (rob store.Robots, used Usage, why error, err error) {
	rob = store.Robots{Fetched: now, Expires: now.Add(robotsFresh)}
	at := origin + "/robots.txt"
	for hop := 0; ; hop++ {
		var gateErr error
		resp, err := c.getSoon(ctx, hop > 0, Request{URL: at, Accept: "text/plain,*/*;q=0.5", MaxBody: maxRobotsBody},
			func(ctx context.Context) error {
				gateErr = gate(ctx)
				if gateErr == nil {
					used.Reqs++
				}
				return gateErr
			})
		var busy *BusyError
		switch {
		case gateErr != nil:
			return rob, used, nil, gateErr
		case ctx.Err() != nil:
			return rob, used, nil, ctx.Err()
		case errors.As(err, &busy):
			return rob, used, nil, busy
		case err != nil:
			return rob, used, err, nil // Status 0
		}
		used.add(resp)
		next := ""
		if resp.Status >= 300 && resp.Status < 400 && hop < maxRobotsRedirects {
			next = resolve(at, resp.Header.Get("Location"))
		}
		if next == "" {
			rob.Status = resp.Status
			if resp.Status >= 200 && resp.Status < 300 {
				rob.Body = wholeLines(resp.Body, resp.Truncated != "")
			}
			if Unreachable(rob) {
				why = fmt.Errorf("fetch: robots.txt: status %d", resp.Status)
			}
			used.RetryAfter = resp.Header.Get("Retry-After")
			return rob, used, why, nil
		}
		at = next
	}
}

// Usage is the cost of one or more requests.
type Usage struct {
	Reqs       int
	Bytes      int64
	Asked      time.Time     // of the last response
	Slow       time.Duration // the slowest response
	RetryAfter string        // from the last response
}

func (u *Usage) add(r *Response) {
	u.Bytes += r.Bytes
	u.Asked = r.Asked
	u.Slow = max(u.Slow, r.Elapsed)
}

// resolve returns the http URL of ref relative to base. It returns "" if the result is not an http
// URL.
func resolve(base, ref string) string {
	b, err := url.Parse(base)
	if err != nil || ref == "" {
		return ""
	}
	u, err := b.Parse(ref)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	u.Fragment = ""
	return u.String()
}

// maxHopWait is how long a redirected robots.txt request waits for its address.
const maxHopWait = 30 * time.Second

// getSoon is Get. If waits is true, it waits for a busy address, at most maxHopWait. A redirect
// chain that starts over would find the address busy again.
func (c *Client) getSoon(ctx context.Context, waits bool, r Request, gate func(context.Context) error) (*Response,
	error) {
	begun := time.Now()
	for {
		resp, err := c.Get(ctx, r, gate)
		var busy *BusyError
		if !waits || !errors.As(err, &busy) || time.Since(begun) > maxHopWait {
			return resp, err
		}
		if err := Sleep(ctx, max(time.Until(busy.Until), time.Millisecond)); err != nil {
			return nil, err
		}
	}
}

// wholeLines copies a body. If the body was cut, the copy leaves out the incomplete last line,
// because half a rule is a different rule.
func wholeLines(body []byte, cut bool) []byte {
	if cut {
		if i := bytes.LastIndexByte(body, '\n'); i >= 0 {
			body = body[:i+1]
		}
	}
	return bytes.Clone(body)
}

// Unreachable reports whether rob is a robots.txt that could not be fetched. Then everything is
// disallowed for now (RFC 9309 section 2.3.1.4). A 429 counts too: the site asks for fewer
// requests, and a crawl sends more.
func Unreachable(rob store.Robots) bool {
	return rob.Status == 0 || rob.Status >= 500 || rob.Status == http.StatusTooManyRequests
}

// Allowed reports whether rob lets this program fetch u.
func Allowed(rob store.Robots, u string) bool {
	ok, _ := Judge(rob, u)
	return ok
}

// Judge is Allowed, and also returns the limit that reading rob hit, nil = none. If a limit was
// hit, nothing of the site is allowed, because the unread part may forbid it.
func Judge(rob store.Robots, u string) (ok bool, over *LimitError) {
	if Unreachable(rob) {
		return false, nil
	}
	return judge(rob.Body, Token, u)
}

// judge is Judge for a robots.txt that was fetched, and for any agent.
func judge(body []byte, agent, u string) (ok bool, over *LimitError) {
	if len(body) == 0 {
		return true, nil
	}
	at, err := url.Parse(u)
	if err != nil {
		return false, nil
	}
	v := verdict{agent: agent, path: pathOf(at.String())}
	eachLine(bounded(body), v.line)
	return v.over == nil && !v.disallowed(), v.over
}

// bounded returns the part of a robots.txt that is read.
func bounded(body []byte) []byte {
	if len(body) <= maxRobotsBody {
		return body
	}
	return wholeLines(body[:maxRobotsBody], true)
}

// CrawlDelay returns the Crawl-delay of rob for this program. It comes from the group of this
// program if there is one, otherwise from the group for all.
func CrawlDelay(rob store.Robots) (d time.Duration, ok bool) {
	if len(rob.Body) == 0 || !bytes.Contains(bytes.ToLower(rob.Body), []byte("crawl-delay")) {
		return 0, false
	}
	var l lags
	eachLine(bounded(rob.Body), l.line)
	if l.mine.seen {
		return l.mine.delay, l.mine.given
	}
	return l.all.delay, l.all.given
}

// Sitemaps returns the values of the Sitemap lines of rob, unchanged, at most maxSitemaps.
func Sitemaps(rob store.Robots) (refs []string) {
	var l lags
	eachLine(bounded(rob.Body), l.line)
	return l.sitemaps
}

// lags reads the Crawl-delay and Sitemap lines of a robots.txt. Consecutive user-agent lines begin
// one group, as for the rules.
type lags struct {
	mine, all lag
	inMine    bool
	inAll     bool
	rules     bool // a rule followed the last user-agent line
	sitemaps  []string
}

// lag is the Crawl-delay of one group.
type lag struct {
	seen, given bool
	delay       time.Duration
}

// line reads one field of a robots.txt.
func (l *lags) line(f field, name, value []byte) bool {
	switch f {
	case fieldAgent:
		l.user(string(value))
	case fieldAllow, fieldDisallow:
		l.rules = true
	case fieldSitemap: // a Sitemap line belongs to no group
		if len(value) > 0 && len(value) <= partition.MaxInputBytes && len(l.sitemaps) < maxSitemaps {
			l.sitemaps = append(l.sitemaps, string(value))
		}
	default:
		if bytes.EqualFold(name, []byte("crawl-delay")) {
			l.lag(string(value))
		}
	}
	return true
}

// user reads a user-agent line. After a rule, it begins a new group.
func (l *lags) user(value string) {
	if l.rules {
		l.inMine, l.inAll, l.rules = false, false, false
	}
	name := value
	if i := strings.IndexFunc(value, notInToken); i >= 0 {
		name = value[:i]
	}
	switch {
	case strings.EqualFold(name, Token):
		l.inMine, l.mine.seen = true, true
	case value == "*" || strings.HasPrefix(value, "* "):
		l.inAll = true
	}
}

func notInToken(r rune) bool {
	return r != '-' && r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// lag reads a Crawl-delay line. It counts as a rule. The longest delay of a group wins.
func (l *lags) lag(value string) {
	l.rules = true
	d, ok := seconds(value)
	if !ok {
		return
	}
	if l.inMine {
		l.mine.delay, l.mine.given = max(l.mine.delay, d), true
	}
	if l.inAll {
		l.all.delay, l.all.given = max(l.all.delay, d), true
	}
}

// seconds parses "10", "0.5" or "1e3". The result is at most a year.
func seconds(text string) (time.Duration, bool) {
	const year = 365 * 24 * 3600
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(f >= 0) {
		return 0, false
	}
	return time.Duration(min(f, year) * float64(time.Second)), true
}
