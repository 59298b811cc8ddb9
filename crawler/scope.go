package crawler

import (
	"fmt"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/judge/period"
	"github.com/echo-node/echo-node/crawler/judge/promise"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// The temporal crawl: with Options.Scope, links that promise pages about the wanted time are
// fetched first. It changes the order and leaves nothing out, so the same pages are crawled in the
// end. A Key is admitted once, with the priority of the first page that links to it (I1). Later
// evidence does not change the priority. "echo-lab temporal" measures what that costs.

const (
	maxScoped  = 32 << 10 // bytes of a text that are cut into segments
	maxAnchors = 1000     // links whose place in the text is looked up
	scopedSpan = 200      // the difference in priority between a link that surely leads there and one that does not
)

// order returns the priority that a link of the page gets in addition to its depth, from 0 (first)
// to scopedSpan. Without a Scope it is always 0.
func (c *Crawler) order(from store.Due, rec *store.Record) func(partition.Key) int {
	if c.o.Scope == nil || rec == nil {
		return func(partition.Key) int { return 0 }
	}
	promise, err := scoped(c.o.Scope, rec)
	if err != nil {
		c.o.Logger.Warn("links not ordered by scope", "key", from.Key, "err", err)
	}
	return func(k partition.Key) int {
		if p, ok := promise[k]; ok {
			return p
		}
		if k == rec.Redirect {
			return min(max(from.Priority-from.Depth, 0), scopedSpan) // the redirect's target is what the link promised
		}
		return scopedSpan
	}
}

// scoped returns the priorities of a page's links by scope. It knows nothing of a link that is
// missing in the result. A panic of the judge becomes an error.
func scoped(scope period.Scope, rec *store.Record) (out map[partition.Key]int, err error) {
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, fmt.Errorf("the judge of times panicked: %.80v", r)
		}
	}()
	var written time.Time
	if rec.PublishedAt != nil {
		written = *rec.PublishedAt
	}
	segments := period.Segments(blocksOf(rec), written, period.SegmentOptions{Sentences: true, Inherit: 2})
	links := make([]period.Link, len(rec.Links))
	for i, l := range rec.Links {
		links[i] = period.Link{Key: string(l.Key), Anchor: l.Anchor}
	}
	promises := promise.Promises(scope, segments, links)
	out = make(map[partition.Key]int, len(promises))
	for key, score := range promises {
		out[partition.Key(key)] = int((1 - score) * scopedSpan)
	}
	return out, nil
}

// blocksOf returns the lines of a page's text, with the links whose anchors are in them. A record
// does not say where a link was. But its links and its text are in the order of the page. So each
// anchor is searched behind the anchor before.
func blocksOf(rec *store.Record) []period.Block {
	text := rec.Text[:min(len(rec.Text), maxScoped)]
	var blocks []period.Block
	for line := range strings.SplitSeq(strings.ToValidUTF8(text, ""), "\n") {
		blocks = append(blocks, period.Block{Text: line})
	}
	line, at := 0, 0
	for _, l := range rec.Links[:min(len(rec.Links), maxAnchors)] {
		if l.Anchor == "" {
			continue
		}
		for i, from := line, at; i < len(blocks); i, from = i+1, 0 {
			if found := strings.Index(blocks[i].Text[from:], l.Anchor); found >= 0 {
				line, at = i, from+found
				blocks[i].Links = append(blocks[i].Links, period.Link{Key: string(l.Key), Anchor: l.Anchor, At: at})
				at += len(l.Anchor)
				break
			}
		}
	}
	return blocks
}
