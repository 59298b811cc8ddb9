package rivals

import (
	"context"
	"errors"
	"time"

	"github.com/gocolly/colly/v2"
)

// Colly crawls with Colly as its documentation does: it follows every link, fetches each page
// once, obeys robots.txt and stores nothing. It ends with ctx.
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
		// A page fetched in the meantime may link to a URL that still has to be added.
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
	case <-ctx.Done(): // the process ends, and running requests with it
	case <-done:
	}
	return nil
}
