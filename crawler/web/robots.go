package web

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// giveUp is how long the robots.txt of an unreachable origin counts as given up. After that, new
// Keys of the origin cause a new request. A Robots counts as given up if its Expires is at least
// giveUp after its Fetched; no back-off is that long.
const giveUp = 2 * time.Hour

// maxOrigins is the number of origins of one site whose robots.txt is kept.
const maxOrigins = 8

// robots makes sure that the robots.txt of origin is known. ok reports that res.Site.Robots[origin]
// exists, is fresh and can be used. Otherwise res is the complete result.
func (s *Source) robots(ctx context.Context, t fetch.Task, origin string, res *fetch.Result) (ok bool, err error) {
	rob, have := t.Site.Robots[origin]
	if !have || !t.Now.Before(rob.Expires) {
		return false, s.askRobots(ctx, t, origin, res)
	}
	switch {
	case givenUp(rob):
		*res = refuse(*res, "unreachable", "unreachable: "+t.Site.Stopped)
		if t.Site.Stopped == "" {
			res.Next.Reason = "unreachable: robots.txt"
		}
		return false, nil
	case fetch.Unreachable(rob):
		res.Again, res.Site.NextAllowed = true, rob.Expires
		return false, nil
	}
	if lag, asked := fetch.CrawlDelay(rob); asked && lag > s.o.MaxLag {
		why := fmt.Sprintf("crawl-delay %v is over %v", lag, s.o.MaxLag)
		res.Site.Stopped = why
		*res = refuse(*res, "crawl-delay", why)
		return false, nil
	}
	return true, nil
}

// givenUp reports whether the origin of r was given up (see giveUp).
func givenUp(r store.Robots) bool {
	return fetch.Unreachable(r) && r.Expires.Sub(r.Fetched) >= giveUp
}

// askRobots fetches the robots.txt of origin and stores it in res.Site. The crawler asks for the
// Key again. The sitemaps of robots.txt become links.
func (s *Source) askRobots(ctx context.Context, t fetch.Task, origin string, res *fetch.Result) error {
	rob, used, why, err := s.o.Client.Robots(ctx, origin, t.Now, t.Gate)
	res.Again, res.Reqs, res.Bytes, res.Asked, res.Slow = true, used.Reqs, used.Bytes, used.Asked, used.Slow
	var busy *fetch.BusyError
	if errors.As(err, &busy) {
		res.Site.NextAllowed = busy.Until
		return nil
	}
	if err != nil {
		return err
	}
	if len(rob.Body) > 0 {
		done, err := t.Judging(ctx, MaxMemory(len(rob.Body)))
		if err != nil {
			return err
		}
		defer done()
		// This parses rob for the first time, inside the attempt that t.Judging records.
		_ = fetch.Allowed(rob, t.Due.Key.URL())
	}
	site := &res.Site
	if why == nil {
		s.o.Retry.Answered(site)
		site.Stopped = ""
		site.Delay, _ = fetch.CrawlDelay(rob)
		if site.Delay > s.o.MaxLag {
			site.Delay = 0 // the site is skipped, so it has no delay
		}
		var refs []ref
		for _, at := range fetch.Sitemaps(rob) {
			if t.Due.Key.Kind() == partition.KindFile { // a file makes no site to crawl
				break
			}
			refs = append(refs, ref{href: at, rel: "sitemap"})
		}
		res.Links, _ = links(origin+"/robots.txt", "", refs, len(refs), maxLinkBytes)
	} else {
		s.unreachable(site, &rob, t.Now, why, used.RetryAfter)
		res.Stop = "robots-" + fetch.Stop(why)
	}
	site.Robots = with(site.Robots, origin, rob)
	return nil
}

// unreachable sets when the robots.txt of an origin is requested again: after the site's growing
// wait. After the last try, or at once when another try would not help, it gives up for giveUp.
func (s *Source) unreachable(site *store.Site, rob *store.Robots, now time.Time, why error, retryAfter string) {
	before := site.NextAllowed
	s.o.Retry.Failed(site, now)
	if rob.Status == http.StatusTooManyRequests || rob.Status == http.StatusServiceUnavailable {
		s.o.Retry.Slowed(site, now, retryAfter)
	}
	rob.Expires = site.NextAllowed
	if fetch.Final(why) || s.o.Retry.Down(*site) {
		site.Stopped = fetch.Reason(why)
		site.NextAllowed = before // its Keys are refused without a request
		rob.Expires = now.Add(giveUp)
		site.Failures = 0 // nothing is known of the site's other origins
	} else if rob.Expires.Sub(now) >= giveUp { // a long Retry-After does not mean given up
		rob.Expires = now.Add(giveUp - time.Second)
	}
}

// with and without return a copy, because the map of a Task's Site is shared.
func with(m map[string]store.Robots, origin string, r store.Robots) map[string]store.Robots {
	c := make(map[string]store.Robots, len(m)+1)
	maps.Copy(c, m)
	if len(c) >= maxOrigins {
		clear(c)
	}
	c[origin] = r
	return c
}

func without(m map[string]store.Robots, origin string) map[string]store.Robots {
	c := maps.Clone(m)
	delete(c, origin)
	return c
}
