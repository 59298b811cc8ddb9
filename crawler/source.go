package crawler

import (
	"context"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/partition"
)

// Source fetches one kind of thing. It is the only interface between packages. It does not decide
// when to fetch: it is given one due Key at a time. It must be safe for concurrent use.
type Source interface {
	// Name is the word in Record.Source, logs and metrics: web, mastodon, ...
	Name() string
	// Handles reports whether this Source fetches k.
	Handles(k partition.Key) bool
	// Fetch fetches t.Key once, politely: t.Gate has allowed each of its requests, the first one
	// too. A failed fetch is a Result whose Next says so. An error has one of three reasons: Gate
	// returned it, ctx is done, or this process cannot go on, which stops the node.
	Fetch(ctx context.Context, t Task) (Result, error)
}

// Task and Result are the argument and the result of a Source. Package fetch defines them, so that
// the sources, which are siblings of fetch, need not import their parent.
type (
	Task   = fetch.Task
	Result = fetch.Result
)
