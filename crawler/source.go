package crawler

import (
	"context"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Source fetches one kind of thing. It is the only interface of this program.
// A Source decides nothing about when; it is asked for one due Key at a time
// and must be safe for concurrent use.
type Source interface {
	// Name is the word in Record.Source, logs and metrics: web, mastodon, ...
	Name() string
	// Handles says whether this Source fetches k.
	Handles(k partition.Key) bool
	// Fetch fetches t.Key once, politely: every request it makes has been
	// allowed by t.Gate. A failed fetch is a Result whose Next says so; an error
	// means this process cannot go on (and stops the node) or ctx is done.
	Fetch(ctx context.Context, t Task) (Result, error)
}

// Task is one due Key with what is known of it.
type Task struct {
	Due  store.Due
	Site store.Site // a copy; Result.Site replaces it
	Now  time.Time
	// Gate waits until the site may be asked again and reserves the moment; each
	// request after the task's first (robots.txt, a second page) passes it too.
	Gate func(ctx context.Context) error
}

// Result is what one fetch produced.
type Result struct {
	Record *store.Record // nil when there is nothing to keep
	Next   store.Next
	Links  []store.Link // what to admit; NoFollow ones are left out by the crawler
	Site   store.Site   // politeness state after the fetch: delay, back-off, robots
	Bytes  int64        // received, for --max-bandwidth
	Reqs   int          // requests made, robots.txt included
}
