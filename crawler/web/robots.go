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

// giveUp is how long the robots.txt of an origin that was given up stays so,
// before new Keys of it make us ask again. A Robots that expires later after
// its Fetched than any back-off stands for a given-up origin.
const giveUp = 2 * time.Hour

// maxOrigins is how many origins of one site have their robots.txt kept.
const maxOrigins = 8

// robots sees to the robots.txt of origin. ok says that res.Site.Robots[origin]
// is there, fresh and usable; else res is the whole result.
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

func givenUp(r store.Robots) bool {
	return fetch.Unreachable(r) && r.Expires.Sub(r.Fetched) >= giveUp
}

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
		_ = fetch.Allowed(rob, t.Due.Key.URL()) // read for the first time, while the swarm knows of the attempt
	}
	site := &res.Site
	if why == nil {
		s.o.Retry.Answered(site)
		site.Stopped = ""
		site.Delay, _ = fetch.CrawlDelay(rob)
		if site.Delay > s.o.MaxLag {
			site.Delay = 0 // the site is skipped, not waited for
		}
		var refs []ref
		for _, at := range fetch.Sitemaps(rob) {
			if t.Due.Key.Kind() == partition.KindFile { // that a host has a file of somebody makes it no site to crawl
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

// unreachable says when origin's robots.txt is asked for again: with the
// site's growing wait, or given up for giveUp after the last try or at once
// when another try would not help.
func (s *Source) unreachable(site *store.Site, rob *store.Robots, now time.Time, why error, retryAfter string) {
	before := site.NextAllowed
	s.o.Retry.Failed(site, now)
	if rob.Status == http.StatusTooManyRequests || rob.Status == http.StatusServiceUnavailable {
		s.o.Retry.Slowed(site, now, retryAfter)
	}
	rob.Expires = site.NextAllowed
	if fetch.Final(why) || s.o.Retry.Down(*site) {
		site.Stopped = fetch.Reason(why)
		site.NextAllowed = before // its Keys are refused without asking
		rob.Expires = now.Add(giveUp)
		site.Failures = 0 // of other origins of the site nothing is known
	} else if rob.Expires.Sub(now) >= giveUp { // a long Retry-After is not giving up
		rob.Expires = now.Add(giveUp - time.Second)
	}
}

// with and without copy: the map of a Task's Site is shared.
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
