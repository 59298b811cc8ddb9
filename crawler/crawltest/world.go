package crawltest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// World is a synthetic web, together with what its server measured about visitors. Its pages are
// safe for concurrent use. Only one goroutine may call Start and Close.
type World struct {
	opts   Options
	net    netip.Prefix // contains the sites' addresses
	wanted int          // Options.Port as given; with 0, Start picks a port
	vocab  []vocabulary
	names  map[string]int // site index by host name, with Options.Names
	ports  []string       // host and port of every site, as written in URLs
	counts []siteCount
	stray  strayCount
	pauses pauseCount

	mu      sync.Mutex
	servers []*http.Server
	serving sync.WaitGroup
}

// NewWorld returns the world for o. It panics if o is not valid, which suits a test. For options
// that a person typed, call Options.Check first.
func NewWorld(o Options) *World {
	wanted := o.Port
	o = o.filled()
	if err := o.validate(); err != nil {
		panic(err)
	}
	w := &World{opts: o, net: netip.MustParsePrefix(o.Prefix + ".0.0/16"), wanted: wanted, vocab: vocabularies(),
		names: make(map[string]int), counts: make([]siteCount, o.Sites)}
	if o.Names {
		for s := range o.Sites {
			w.names[w.name(s)] = s
		}
	}
	w.setPort(o.Port)
	return w
}

// setPort sets the port and so the URLs of the world.
func (w *World) setPort(port int) {
	w.opts.Port, w.ports = port, make([]string, w.opts.Sites)
	for s := range w.ports {
		w.ports[s] = w.Host(s)
		if port != 80 {
			w.ports[s] = net.JoinHostPort(w.Host(s), strconv.Itoa(port))
		}
	}
}

// Check returns the faults of o, or nil if NewWorld accepts it.
func (o Options) Check() error { return o.filled().validate() }

// Sites returns the number of sites.
func (w *World) Sites() int { return w.opts.Sites }

// Lang returns the language of site s, BCP 47.
func (w *World) Lang(s int) string { return w.vocabOf(s).lang }

// Place returns the location that site s declares. It returns false if the site declares none.
func (w *World) Place(s int) (Place, bool) {
	if len(w.opts.Places) == 0 {
		return Place{}, false
	}
	return w.opts.Places[s%len(w.opts.Places)], true
}

// Addr returns the loopback address of site s.
func (w *World) Addr(s int) netip.Addr {
	s -= s % w.opts.Shared
	b := w.AllowNet().Addr().As4()
	b[2], b[3] = byte(s/250), byte(s%250+1)
	return netip.AddrFrom4(b)
}

// AllowNet returns the network that contains every site's address, and none of the addresses that a
// crawler must not reach.
func (w *World) AllowNet() netip.Prefix { return w.net }

// Host returns the host of site s as written in URLs, without the port.
func (w *World) Host(s int) string {
	if w.opts.Names {
		return w.name(s)
	}
	return w.Addr(s).String()
}

// Hosts maps the host of every site to its address. It is a fixed resolver for a world with
// Options.Names.
func (w *World) Hosts() map[string]netip.Addr {
	m := make(map[string]netip.Addr, w.opts.Sites)
	for s := range w.opts.Sites {
		m[w.Host(s)] = w.Addr(s)
	}
	return m
}

// Seeds returns the home pages from which the whole world is reachable.
func (w *World) Seeds() []string {
	urls := make([]string, 0, w.opts.Seeds)
	for s := range w.opts.Seeds {
		urls = append(urls, w.url(ref{site: s}))
	}
	return urls
}

// Home returns the URL of the home page of site s.
func (w *World) Home(s int) string { return w.url(ref{site: s}) }

// name returns the host name of site s. It is a registrable domain of its own, because .test has no
// entry in the public suffix list.
func (w *World) name(s int) string {
	v := w.vocabOf(s)
	return fmt.Sprintf("%s-%d.test", v.topics[s/len(w.vocab)%len(v.topics)].slug, s+1)
}

func (w *World) vocabOf(s int) vocabulary { return w.vocab[s%len(w.vocab)] }

// siteOf returns the site of a host as sent in a request, with or without a port.
func (w *World) siteOf(hostport string) (int, bool) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		host, port = hostport, "80"
	}
	if port != strconv.Itoa(w.opts.Port) {
		return 0, false
	}
	if w.opts.Names {
		s, ok := w.names[strings.ToLower(host)]
		return s, ok
	}
	a, err := netip.ParseAddr(host)
	if err != nil || !a.Is4() || !w.AllowNet().Contains(a) {
		return 0, false
	}
	b := a.As4()
	s := int(b[2])*250 + int(b[3]) - 1
	if s < 0 || s >= w.opts.Sites || w.Addr(s) != a {
		return 0, false
	}
	return s, true
}

// url returns the canonical URL of r.
func (w *World) url(r ref) string { return "http://" + w.hostport(r.site) + w.path(r) }

func (w *World) hostport(s int) string { return w.ports[s] }

// parse returns the page of a canonical URL. It returns false if the world has no such page or the
// spelling is not canonical.
func (w *World) parse(text string) (ref, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" {
		return ref{}, false
	}
	s, ok := w.siteOf(u.Host)
	if !ok {
		return ref{}, false
	}
	r, ok := w.parsePath(s, u.RequestURI())
	return r, ok && w.url(r) == text
}

// Purposes of random numbers. Each has its own stream, so one kind of content can change without a
// change of the others.
const (
	drawText uint64 = iota + 1
	drawLinks
	drawTopic
	drawToken
	drawShape
)

// draw returns the stream of random numbers for one purpose of one page.
func (w *World) draw(purpose uint64, site, n int) *rand.Rand {
	return rand.New(rand.NewPCG(w.opts.Seed^purpose*0x9e3779b97f4a7c15, uint64(site)<<32|uint64(n)))
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// sorted returns the members of a set in sorted order.
func sorted(set map[string]bool) []string {
	list := make([]string, 0, len(set))
	for s := range set {
		list = append(list, s)
	}
	slices.Sort(list)
	return list
}
