package crawltest

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Options configures NewWorld. The zero value is the world of the demo: 80 sites with 8 articles
// each, about 900 URLs.
type Options struct {
	Seed   uint64        // for everything generated; 0 is a valid seed too
	Sites  int           // number of sites; default 80, at most 60,000
	Pages  int           // articles per site, with its home page; default 8, at most 1,000,000
	Words  int           // minimum number of words on a page; default 120
	Degree int           // random links per page; default 6, negative = none (only the tree)
	Cross  float64       // share of random links that leave the site; default 0.4, negative = none
	Seeds  int           // length of Seeds(); default 3, at most Sites
	Names  bool          // a site is a host name under .test; default: its own address
	Shared int           // sites per address, with Names; default 1
	Prefix string        // first two bytes of the sites' addresses; default "127.77"
	Port   int           // in the URLs; default 80 until Start picks a free port
	Plain  bool          // only articles: no redirects, robots rules, copies or traps; default: all
	Maze   bool          // with an endless path that no robots.txt forbids; default without
	Think  time.Duration // time that the server takes per page; default 0
	Gap    time.Duration // Report.Hurried counts gaps shorter than this; default 0 = none
	// CrawlDelay is the Crawl-delay in the robots.txt of every fourth site. Default 0 = none.
	CrawlDelay time.Duration
	// Places are the locations of the sites. Site s declares Places[s % len(Places)] in the head of
	// every page (geo.position, ICBM, geo.placename) and in its address element. By default no site
	// declares one.
	Places []Place
	// Seen is called when a request to a site begins, in the goroutine that serves it. It must be
	// quick and safe for concurrent use. Default nil.
	Seen func(Visit)
}

// Place is the location of a site.
type Place struct {
	Name     string // as people write it
	Lat, Lon float64
}

// Visit is one request to a site.
type Visit struct {
	Site int
	URL  string // canonical, as in Expected, if the world has such a page
	From netip.Addr
	At   time.Time
	// Page reports whether the request was for a page of the world. It is false for robots.txt and
	// for URLs that no page links to.
	Page bool
}

// With at most maxSites, an address of a site fits into the two bytes after the prefix.
const (
	maxSites = 60_000
	maxPages = 1_000_000
)

// filled returns o with its defaults.
func (o Options) filled() Options {
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	def(&o.Sites, 80)
	def(&o.Pages, 8)
	def(&o.Words, 120)
	def(&o.Degree, 6)
	def(&o.Seeds, min(3, o.Sites))
	def(&o.Port, 80)
	def(&o.Shared, 1)
	o.Degree = max(o.Degree, 0)
	if o.Cross == 0 {
		o.Cross = 0.4
	}
	o.Cross = max(o.Cross, 0)
	if o.Prefix == "" {
		o.Prefix = "127.77"
	}
	return o
}

// validate reports every fault of a filled o.
func (o Options) validate() error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	check(o.Sites > 0 && o.Sites <= maxSites, "sites %d: want 1 to %d", o.Sites, maxSites)
	check(o.Pages > 0 && o.Pages <= maxPages, "pages %d: want 1 to %d", o.Pages, maxPages)
	check(o.Words > 0 && o.Words <= 100_000, "words %d: want 1 to 100000", o.Words)
	check(o.Degree <= 1000, "degree %d: want at most 1000", o.Degree)
	check(o.Cross <= 1, "cross %v: want at most 1", o.Cross)
	check(o.Seeds > 0 && o.Seeds <= o.Sites, "seeds %d: want 1 to the number of sites", o.Seeds)
	check(o.Shared == 1 || o.Shared > 1 && o.Names, "%d sites to an address: want 1, or more with Names", o.Shared)
	check(o.Port > 0 && o.Port < 65536, "port %d: want 1 to 65535", o.Port)
	check(o.Think >= 0 && o.CrawlDelay >= 0 && o.Gap >= 0, "negative duration")
	_, err := netip.ParsePrefix(o.Prefix + ".0.0/16")
	check(err == nil, "prefix %q: want the first two bytes of an address, such as 127.77", o.Prefix)
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("crawltest: options: %w", err)
	}
	return nil
}
