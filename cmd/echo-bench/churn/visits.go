package churn

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest"
)

// told caches the links of each page of the test web that a polite crawler may follow.
type told struct {
	world *crawltest.World
	out   map[string][]string
}

func (t *told) by(url string) []string {
	if out, ok := t.out[url]; ok {
		return out
	}
	var out []string
	if p, ok := t.world.Page(url); ok && !p.Disallowed {
		if p.Redirect != "" {
			out = append(out, p.Redirect)
		}
		for _, l := range p.Links {
			if !l.NoFollow && !p.NoFollow {
				out = append(out, l.URL)
			}
		}
	}
	t.out[url] = out
	return out
}

// knownSince is how long before a kill a page with a link must have been fetched, so that the
// link counts as known work: it has reached its owner.
const knownSince = 2 * time.Second

// takeover says how a site continued after a kill: when, and which peer asked it. If no peer
// did, by is not valid, and after is the time to the end.
type takeover struct {
	site  int
	after time.Duration
	by    netip.Addr
}

// takeovers returns the takeovers after a kill, the quickest first. They cover the sites that
// from was the last to ask and that had a known page not yet fetched. all is in order of time;
// expected has the pages that count.
func takeovers(all []crawltest.Visit, t *told, site func(url string) int, expected map[string]bool, at time.Time,
	from netip.Addr, end time.Time) []takeover {
	last, known, fetched := map[int]netip.Addr{}, map[string]bool{}, map[string]bool{}
	i := 0
	for ; i < len(all) && all[i].At.Before(at); i++ {
		v := all[i]
		last[v.Site] = v.From
		if !v.Page {
			continue
		}
		fetched[v.URL] = true
		if v.At.Before(at.Add(-knownSince)) {
			for _, u := range t.by(v.URL) {
				known[u] = true
			}
		}
	}
	waits := map[int]takeover{}
	for u := range known {
		if s := site(u); s >= 0 && expected[u] && !fetched[u] && last[s] == from {
			waits[s] = takeover{site: s, after: end.Sub(at)}
		}
	}
	for _, v := range slices.Backward(all[i:]) { // the first is written last
		if _, ok := waits[v.Site]; ok {
			waits[v.Site] = takeover{v.Site, v.At.Sub(at), v.From}
		}
	}
	out := slices.Collect(maps.Values(waits))
	slices.SortFunc(out, func(a, b takeover) int { return cmp.Compare(a.after, b.after) })
	return out
}

// offences describes the first few requests that came sooner than least after the previous one,
// and fetches of an already fetched page: the peer, the time and the URL.
func offences(all []crawltest.Visit, least time.Duration, name func(netip.Addr) string,
	began time.Time) (out []string) {
	last, fetched := map[int]crawltest.Visit{}, map[string]crawltest.Visit{}
	hurried, twice := 0, 0
	when := func(v crawltest.Visit) string {
		return fmt.Sprintf("%s at %.3f s", name(v.From), v.At.Sub(began).Seconds())
	}
	for _, v := range all {
		if before, ok := last[v.Site]; ok && v.At.Sub(before.At) < least {
			if hurried++; hurried <= firstLost {
				out = append(out, fmt.Sprintf("hurried %s: %s after %s", v.URL, when(v), when(before)))
			}
		}
		last[v.Site] = v
		if before, ok := fetched[v.URL]; ok && v.Page {
			if twice++; twice <= firstLost {
				out = append(out, fmt.Sprintf("twice %s: %s after %s", v.URL, when(v), when(before)))
			}
		}
		fetched[v.URL] = v
	}
	return out
}

// busiest returns, for each site, the peer that asked it most.
func busiest(all []crawltest.Visit) map[int]netip.Addr {
	counts := map[int]map[netip.Addr]int{}
	for _, v := range all {
		if counts[v.Site] == nil {
			counts[v.Site] = map[netip.Addr]int{}
		}
		counts[v.Site][v.From]++
	}
	out := map[int]netip.Addr{}
	for s, c := range counts {
		most := 0
		for a, n := range c {
			if n > most || n == most && a.Less(out[s]) {
				out[s], most = a, n
			}
		}
	}
	return out
}

// median returns the median of the sorted copy, or 0 for no values.
func median[T cmp.Ordered](v []T) (m T) {
	if len(v) == 0 {
		return m
	}
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}
