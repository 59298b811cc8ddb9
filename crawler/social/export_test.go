package social

import (
	"maps"
	"strconv"

	"github.com/echo-node/echo-node/crawler/mastodon"
)

// Sizes are how many things a Source holds in memory, of each kind, and the bytes of its largest Book.
func (s *Source) Sizes() map[string]int {
	out := map[string]int{}
	s.ahead.mu.Lock()
	out["looked up"], out["sites that look up one"] = len(s.ahead.by), len(s.ahead.never)
	s.ahead.mu.Unlock()
	s.hours.mu.Lock()
	out["hours"] = len(s.hours.by)
	s.hours.mu.Unlock()
	s.mu.Lock()
	out["servers"] = len(s.servers)
	s.mu.Unlock()
	s.budgets.mu.Lock()
	all := maps.Clone(s.budgets.sites)
	s.budgets.mu.Unlock()
	out["rate budgets"] = len(all)
	for _, p := range all {
		p.mu.Lock()
		out["intents"] = max(out["intents"], len(p.intents))
		out["limits"] = max(out["limits"], len(p.limits))
		for _, name := range p.ledgers() {
			if snap, err := p.book.Snapshot(name); err == nil {
				out["bytes of a book"] = max(out["bytes of a book"], len(snap))
			}
		}
		p.mu.Unlock()
	}
	return out
}

// StreamBase is streamBase.
func StreamBase(host, named string) string { return streamBase(host, named) }

// Posted is how many of so many posts are known by their ids, when at most that many may be, and whether the last one
// is.
func Posted(posts, most int) (n int, last bool) {
	p := posted{most: most}
	for i := range posts {
		p.put(postID{"mastodon:m.test", strconv.Itoa(i)}, postOf{})
	}
	_, last = p.find(postID{"mastodon:m.test", strconv.Itoa(posts - 1)})
	return len(p.now) + len(p.old), last
}

// ParentOf is parentOf.
func ParentOf(p mastodon.Post) string { return parentOf(p) }
