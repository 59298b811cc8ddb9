package temporal

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/echo-node/echo-node/crawler/judge/period"
	"github.com/echo-node/echo-node/crawler/judge/promise"
)

// Order is a way to choose the next page.
type Order string

// The orders.
const (
	BreadthFirst Order = "breadth-first" // every link, oldest first
	Random       Order = "random"        // every link, at random
	Paper        Order = "paper"         // links in valid segments, by how often they were seen
	PaperFrozen  Order = "paper-frozen"  // the same, with the count at first sight
	EchoNode     Order = "echo-node"     // every link, in the order of crawler.Options.Scope
	// the same evidence, scored again at each sight, with weights that learn
	Learned Order = "learned"
	Oracle  Order = "oracle" // every link, the relevant ones first
)

// Orders returns all orders.
func Orders() []Order {
	return []Order{BreadthFirst, Random, Paper, PaperFrozen, EchoNode, Learned, Oracle}
}

// Curve is the result of a crawl.
type Curve struct {
	Order Order
	Hits  []int // Hits[i] is how many of the first i+1 pages are relevant
	Found []int // the relevant pages, in the order of the crawl
}

// Precision returns the share of relevant pages among the first n. If the crawl ended earlier,
// the share is still of n.
func (c *Curve) Precision(n int) float64 { return float64(c.found(n)) / float64(n) }

// Recall returns the share of the total relevant pages found among the first n.
func (c *Curve) Recall(n, total int) float64 { return float64(c.found(n)) / float64(max(total, 1)) }

func (c *Curve) found(n int) int {
	if n = min(n, len(c.Hits)); n == 0 {
		return 0
	}
	return c.Hits[n-1]
}

// Pooled returns the paper's recall: the share of the relevant pages that this crawl or the
// other found.
func (c *Curve) Pooled(other *Curve) float64 {
	pool := make(map[int]bool, len(c.Found)+len(other.Found))
	for _, page := range slices.Concat(c.Found, other.Found) {
		pool[page] = true
	}
	return float64(len(c.Found)) / float64(max(len(pool), 1))
}

// Area returns the mean precision over all n up to budget.
func (c *Curve) Area(budget int) float64 {
	sum := 0.0
	for n := 1; n <= budget; n++ {
		sum += c.Precision(n)
	}
	return sum / float64(budget)
}

// Relevant returns how many pages of w are relevant.
func Relevant(w *World, scope period.Scope) int {
	total := 0
	for i := range w.Len() {
		if w.Page(i).Relevant(scope) {
			total++
		}
	}
	return total
}

// Crawl visits budget pages of w from seeds in an order.
func Crawl(w *World, scope period.Scope, seeds []string, budget int, order Order) Curve {
	c := crawl{
		w: w, scope: scope, order: order,
		queue: NewQueue(), learner: newLearner(learnSteps),
		known: make(map[string]promise.LinkEvidence), depth: make(map[string]int), done: make(map[string]bool),
		rng: rand.New(rand.NewPCG(w.seed, 3)),
	}
	for _, key := range seeds {
		c.queue.Put(key, math.MaxFloat64)
		c.depth[key] = 0
	}
	out := Curve{Order: order}
	for len(out.Hits) < budget {
		key, ok := c.next()
		if !ok {
			break
		}
		if c.visit(key) {
			out.Found = append(out.Found, Index(key))
		}
		out.Hits = append(out.Hits, len(out.Found))
	}
	return out
}

type crawl struct {
	w       *World
	scope   period.Scope
	order   Order
	queue   *Queue
	learner *learner
	known   map[string]promise.LinkEvidence
	depth   map[string]int // links from a seed, for EchoNode
	done    map[string]bool
	rng     *rand.Rand
}

// next returns the page to visit.
func (c *crawl) next() (string, bool) {
	if c.order != Learned {
		key, _, ok := c.queue.Pop()
		return key, ok
	}
	return Best(c.queue, func(key string) float64 {
		if e, linked := c.known[key]; linked {
			return c.learner.Score(e)
		}
		return math.MaxFloat64 // a seed
	})
}

// visit reads a page and adds its links. It returns the truth about the page.
func (c *crawl) visit(key string) bool {
	c.done[key] = true
	page := c.w.Page(Index(key))
	segments := period.Segments(page.Blocks, Written, c.cut())
	if c.order == EchoNode {
		c.admit(key, segments)
		return page.Relevant(c.scope)
	}
	valid := 0
	for _, g := range segments {
		if c.scope.Valid(g.Dates, period.PaperShare) {
			valid++
		}
	}
	e, linked := c.known[key]
	steps := 0
	if valid == 0 {
		steps = e.Steps + 1
	}
	if linked && c.order == Learned {
		c.learner.learn(e, valid > 0)
	}
	for _, g := range segments {
		for _, l := range g.Links {
			if !c.done[l.Key] {
				c.put(l, g, float64(valid)/float64(len(segments)), steps)
			}
		}
	}
	return page.Relevant(c.scope)
}

// cut says how pages are cut into segments. The paper's segments continue until the next date.
// Others end, so that a link in an undated block is recognised. EchoNode cuts like the crawler.
func (c *crawl) cut() period.SegmentOptions {
	switch c.order {
	case Learned:
		return period.SegmentOptions{Inherit: 1}
	case EchoNode:
		return period.SegmentOptions{Sentences: true, Inherit: 2}
	}
	return period.SegmentOptions{}
}

// The crawler's priorities: see order and scopedSpan in package crawler.
const (
	promiseSpan  = 200
	lastPriority = 255
)

// admit adds the links of a page with the priority at first sight, which is final.
func (c *crawl) admit(from string, segments []period.Segment) {
	depth := c.depth[from] + 1
	promises := promise.Promises(c.scope, segments, nil)
	for _, g := range segments {
		for _, l := range g.Links {
			if _, seen := c.depth[l.Key]; seen || c.done[l.Key] {
				continue
			}
			c.depth[l.Key] = depth
			c.queue.Put(l.Key, -float64(min(depth+int((1-promises[l.Key])*promiseSpan), lastPriority)))
		}
	}
}

// put adds a link to the queue, or changes its score there.
func (c *crawl) put(l period.Link, g period.Segment, parent float64, steps int) {
	before, seen := c.known[l.Key]
	switch c.order {
	case BreadthFirst:
		c.queue.Put(l.Key, 0)
	case Random:
		if !seen {
			c.queue.Put(l.Key, c.rng.Float64())
		}
		before.Seen++
	case Oracle:
		score := 0.0
		if !seen && c.w.Page(Index(l.Key)).Relevant(c.scope) {
			score = 1
		}
		if !seen {
			c.queue.Put(l.Key, score)
		}
		before.Seen++
	case Paper, PaperFrozen:
		if !c.scope.Valid(g.Dates, period.PaperShare) {
			return
		}
		before.Valid++
		if c.order == Paper || !seen {
			c.queue.Put(l.Key, -float64(Priority(before.Valid)))
		}
	case Learned:
		e := promise.NewLinkEvidence(c.scope, g, l, parent, steps)
		if seen {
			e = before.Merge(e)
		}
		if c.learner.follow(e) {
			c.queue.Put(l.Key, c.learner.Score(e))
		}
		before = e
	}
	c.known[l.Key] = before
}
