package crawler

import (
	"context"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/partition"
)

// Source fetches one kind of thing. It is the only interface between packages.
// A Source decides nothing about when; it is asked for one due Key at a time
// and must be safe for concurrent use.
type Source interface {
	// Name is the word in Record.Source, logs and metrics: web, mastodon, ...
	Name() string
	// Handles says whether this Source fetches k.
	Handles(k partition.Key) bool
	// Fetch fetches t.Key once, politely: every request it makes, the first
	// included, has been allowed by t.Gate. A failed fetch is a Result whose Next
	// says so; an error is one that Gate returned, or means that this process
	// cannot go on (and stops the node) or that ctx is done.
	Fetch(ctx context.Context, t Task) (Result, error)
}

// Task and Result are what a Source is given and gives. They are defined in
// fetch, so that the sources, which are siblings of it, need not import their parent.
type (
	Task   = fetch.Task
	Result = fetch.Result
)
