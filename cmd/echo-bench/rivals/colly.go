package rivals

import (
	"context"
	"errors"
	"time"

	"github.com/gocolly/colly/v2"
)

// Colly crawls with Colly as its documentation does: every link is followed, each
// page once, robots.txt obeyed, nothing stored. It ends with ctx.
func Colly(ctx context.Context, seeds string, parallel int, delay time.Duration) error {
	urls, err := readSeeds(seeds)
	if err != nil {
		return err
	}
	c := colly.NewCollector(colly.Async(true), colly.UserAgent("collector/1.0"), colly.StdlibContext(ctx))
	c.IgnoreRobotsTxt = false
	if err := c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: parallel, Delay: delay}); err != nil {
		return err
	}
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		_ = e.Request.Visit(e.Attr("href")) // seen before, forbidden, or over
	})
	for _, u := range urls {
		// A page that was fetched meanwhile may link to a URL that is still to be given.
		var seen *colly.AlreadyVisitedError
		if e := c.Visit(u); !errors.As(e, &seen) {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		return err
	}
	done := make(chan struct{})
	go func() { c.Wait(); close(done) }()
	select {
	case <-ctx.Done(): // the process ends: what is under way with it
	case <-done:
	}
	return nil
}
