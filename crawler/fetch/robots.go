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

// Robots asks origin ("https://host:port") for its robots.txt as RFC 9309
// section 2.3 says: up to five redirects are followed, a 4xx allows all, a 5xx,
// 429 or no answer disallows all until the site is asked again. used counts
// the requests and bytes. The error is gate's, ctx's or a *BusyError; any other
// failure is a Robots with Status 0, and why says what it was.
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

// Usage is what some requests cost.
type Usage struct {
	Reqs       int
	Bytes      int64
	Asked      time.Time     // of the last answer
	Slow       time.Duration // the slowest answer
	RetryAfter string        // of the last answer
}

func (u *Usage) add(r *Response) {
	u.Bytes += r.Bytes
	u.Asked = r.Asked
	u.Slow = max(u.Slow, r.Elapsed)
}

// resolve is the http address that ref means at base, "" when it means none.
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

// maxHopWait is how long a redirected robots.txt waits for its address.
const maxHopWait = 30 * time.Second

// getSoon is Get that waits for a busy address, if asked to: to come again from
// the start would find it busy again.
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

// wholeLines copies a body without the line that a cut went through: half a
// rule is another rule.
func wholeLines(body []byte, cut bool) []byte {
	if cut {
		if i := bytes.LastIndexByte(body, '\n'); i >= 0 {
			body = body[:i+1]
		}
	}
	return bytes.Clone(body)
}

// Unreachable says whether rob stands for a robots.txt that could not be fetched,
// so that all is disallowed for now (RFC 9309 section 2.3.1.4; 429 asks for
// less, which a crawl of the site would not be).
func Unreachable(rob store.Robots) bool {
	return rob.Status == 0 || rob.Status >= 500 || rob.Status == http.StatusTooManyRequests
}

// Allowed says whether rob lets this program fetch u.
func Allowed(rob store.Robots, u string) bool {
	ok, _ := Judge(rob, u)
	return ok
}

// Judge is Allowed, and over is the bound that reading rob hit, nil = none: then nothing of the site is allowed, as
// what was not read may forbid it.
func Judge(rob store.Robots, u string) (ok bool, over *LimitError) {
	if Unreachable(rob) {
		return false, nil
	}
	return judge(rob.Body, Token, u)
}

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

// bounded is the part of a robots.txt that is read.
func bounded(body []byte) []byte {
	if len(body) <= maxRobotsBody {
		return body
	}
	return wholeLines(body[:maxRobotsBody], true)
}

// CrawlDelay is the Crawl-delay that rob asks of this program: of its own group
// if there is one, else of the group for all.
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

// Sitemaps are the references of the Sitemap lines of rob, as they stand there,
// at most maxSitemaps.
func Sitemaps(rob store.Robots) (refs []string) {
	var l lags
	eachLine(bounded(rob.Body), l.line)
	return l.sitemaps
}

// lags reads the Crawl-delay and Sitemap lines of a robots.txt. Lines of user agents that
// follow each other head one group, as in the rules.
type lags struct {
	mine, all lag
	inMine    bool
	inAll     bool
	rules     bool // a rule came since the last user-agent line
	sitemaps  []string
}

type lag struct {
	seen, given bool
	delay       time.Duration
}

// line takes one field of a robots.txt.
func (l *lags) line(f field, name, value []byte) bool {
	switch f {
	case fieldAgent:
		l.user(string(value))
	case fieldAllow, fieldDisallow:
		l.rules = true
	case fieldSitemap: // it belongs to no group
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

// seconds reads "10", "0.5" or "1e3", at most a year.
func seconds(text string) (time.Duration, bool) {
	const year = 365 * 24 * 3600
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(f >= 0) {
		return 0, false
	}
	return time.Duration(min(f, year) * float64(time.Second)), true
}
