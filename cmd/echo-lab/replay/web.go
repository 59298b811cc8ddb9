package replay

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/echo-node/echo-node/cmd/echo-lab/contest"
)

// perSite is how many items one site has.
const perSite = 20

// Hints is what the sitemaps of a web say about the times of changes.
type Hints string

// The kinds of sitemaps; "" is none.
const (
	Undated  Hints = "undated"  // no times
	Truthful Hints = "truthful" // the real times
	Lying    Hints = "lying"    // an hour ago, for all items
	Betrayal Hints = "betrayal" // the truth for half of the time, then like Lying
)

const sitemapPath = "/sitemap.xml"

// web serves a world. Item i is the page /i of its site, with another text after each of its
// changes. web records the visits by the world's time. That time stands still at World.From
// until every existing item has been looked at once, so policies are compared from the same
// start. It is safe for concurrent use.
type web struct {
	w     *contest.World
	speed float64
	hints Hints
	epoch time.Time // the crawler counts the time of revisits from here

	mu      sync.Mutex
	begun   time.Time // when the world's time started; zero = not yet
	first   int       // items of the start that were not looked at yet
	seen    []int     // by item: number of editions, 1 + the number of the last
	visits  []contest.Visit
	same    int // responses with status 304
	lists   int // sitemaps sent
	started chan struct{}
}

func newWeb(w *contest.World, speed float64, hints Hints) *web {
	s := &web{w: w, speed: speed, hints: hints, seen: make([]int, len(w.Things)), started: make(chan struct{})}
	for i := range w.Things {
		if w.Things[i].Born <= w.From {
			s.first++
		}
	}
	return s
}

// now returns the world's time. The caller holds mu.
func (s *web) now() int64 {
	if s.begun.IsZero() {
		return s.w.From
	}
	return s.w.From + int64(s.speed*time.Since(s.begun).Seconds())
}

// real returns the real time at which the world's time will be at. It is valid only after that
// time started.
func (s *web) real(at int64) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun.Add(time.Duration(float64(at-s.w.From) / s.speed * float64(time.Second)))
}

func host(i int) string           { return fmt.Sprintf("s%d.replay%d.example", i/perSite, i/perSite) }
func address(i int) string        { return "/" + strconv.Itoa(i) }
func tag(i, edition int) string   { return fmt.Sprintf(`"%d-%d"`, i, edition) }
func title(i, edition int) string { return "Item " + spell(i) + ", edition " + spell(edition) }

// spell returns n in letters, because digits might look like a counter.
func spell(n int) string {
	if n < 26 {
		return string(rune('a' + n))
	}
	return spell(n/26-1) + string(rune('a'+n%26))
}

var errNoItem = errors.New("no item")

// look is a visit to item i now. known reports whether the client has the edition.
func (s *web) look(i int, known func(edition int) bool) (edition int, same bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if i < 0 || i >= len(s.w.Things) || s.w.Things[i].Born > now {
		return 0, false, errNoItem
	}
	changes := s.w.Things[i].Changes
	edition = sort.Search(len(changes), func(j int) bool { return changes[j] > now })
	if same = known(edition); same {
		s.same++
	}
	s.visits = append(s.visits, contest.Visit{Thing: i, At: now})
	before := s.seen[i]
	s.seen[i] = edition + 1
	if before == 0 && s.begun.IsZero() {
		if s.first--; s.first == 0 {
			s.begun = time.Now()
			close(s.started)
		}
	}
	return edition, same, nil
}

// ServeHTTP responds for every site. Items with an even number have entity tags. The others,
// like many pages, change a clock and a counter at each visit.
func (s *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if s.hints != "" && r.URL.Path == sitemapPath {
		s.sitemap(rw, r.Host)
		return
	}
	i, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
	name := &url.URL{Host: r.Host}
	if err != nil || i < 0 || host(i) != name.Hostname() {
		http.NotFound(rw, r)
		return
	}
	tagged := i%2 == 0
	edition, same, err := s.look(i,
		func(edition int) bool { return tagged && r.Header.Get("If-None-Match") == tag(i, edition) })
	if err != nil {
		http.NotFound(rw, r)
		return
	}
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	if tagged {
		rw.Header().Set("ETag", tag(i, edition))
	}
	if same {
		rw.WriteHeader(http.StatusNotModified)
		return
	}
	fmt.Fprintf(rw, "<!DOCTYPE html><html lang=en><title>%s</title><body><p>What stands here is the %s edition of item %s, which somebody wrote.</p>", title(i, edition), spell(edition), spell(i))
	if !tagged {
		fmt.Fprintf(rw, "<p>%d views, last at %s</p>", s.views(), time.Now().UTC().Format("15:04:05"))
	}
	fmt.Fprint(rw, "</body></html>") // an error means that the client left
}

func (s *web) views() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.visits)
}

// took returns the visits, and the edition of each item that was fetched last, -1 if none.
func (s *web) took() (visits []contest.Visit, editions []int, same int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	editions = make([]int, len(s.seen))
	for i, n := range s.seen {
		editions[i] = n - 1
	}
	return s.visits[:len(s.visits):len(s.visits)], editions, s.same
}

// sitemap sends the sitemap of the site at hostport.
func (s *web) sitemap(rw http.ResponseWriter, hostport string) {
	var first int
	name := (&url.URL{Host: hostport}).Hostname()
	if _, err := fmt.Sscanf(name, "s%d.", &first); err != nil || first < 0 || first*perSite >= len(s.w.Things) ||
		host(first*perSite) != name {
		rw.WriteHeader(http.StatusNotFound)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	now := s.now()
	rw.Header().Set("Content-Type", "application/xml")
	fmt.Fprint(rw, "<urlset>") // an error means that the client left
	for i := first * perSite; i < min((first+1)*perSite, len(s.w.Things)); i++ {
		if s.w.Things[i].Born > now {
			continue
		}
		fmt.Fprintf(rw, "<url><loc>http://%s%s</loc>", hostport, address(i))
		if at, ok := s.lastmod(&s.w.Things[i], now); ok {
			fmt.Fprintf(rw, "<lastmod>%s</lastmod>", s.revisitTime(at).Format(time.RFC3339))
		}
		fmt.Fprint(rw, "</url>")
	}
	fmt.Fprint(rw, "</urlset>")
}

// lastmod returns when t changed last, according to the sitemap at now.
func (s *web) lastmod(t *contest.Thing, now int64) (at int64, ok bool) {
	lies := s.hints == Lying || s.hints == Betrayal && now > (s.w.From+s.w.To)/2
	switch {
	case s.hints == Undated:
		return 0, false
	case lies:
		return now - 3600, true
	}
	n := sort.Search(len(t.Changes), func(j int) bool { return t.Changes[j] > now })
	if n == 0 {
		return t.Born, true
	}
	return t.Changes[n-1], true
}

// revisitTime converts the world's time at into that of the crawler's revisits. The caller
// holds mu.
func (s *web) revisitTime(at int64) time.Time {
	begun := s.begun
	if begun.IsZero() {
		begun = time.Now()
	}
	ahead := time.Duration(float64(begun.Sub(s.epoch)) * s.speed)
	return s.epoch.Add(ahead + time.Duration(at-s.w.From)*time.Second).UTC()
}

func (s *web) listed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}
