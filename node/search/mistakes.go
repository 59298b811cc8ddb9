package search

import (
	"context"
	"errors"

	"github.com/echo-node/echo-node/crawler/social/follow"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/store"
)

// mostOverridden is the maximum number of accounts with an override that a report considers.
const mostOverridden = 10_000

// Mistakes compares people's overrides, in the whole swarm, with the judge's verdicts on the same
// accounts.
func (en *Engine) Mistakes(ctx context.Context) (api.Mistakes, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var said []store.Record
	missing, err := en.Export(ctx, api.Export{Kind: store.KindProfile}, func(r store.Record, _ string) error {
		if r.Verdict == nil || r.Verdict.Override == nil {
			return nil
		}
		if len(said) == mostOverridden {
			return errEnough
		}
		said = append(said, store.Record{Key: r.Key, Verdict: r.Verdict})
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	r := follow.Mistakes(said)
	out := api.Mistakes{Overrides: len(said), Judged: r.Overrides, Agreed: r.Agreed,
		Undecided: r.Undecided, Kinds: r.Kinds,
		Missing: missing}
	by := make(map[string]*store.Verdict, len(said))
	for _, x := range said {
		by[string(x.Key)] = x.Verdict
	}
	for _, m := range r.Mistakes {
		x := api.Mistake{Override: *by[m.Override.ID].Override,
			Judged: store.Judged{Verdict: m.Judged.Verdict, Score: m.Judged.Score}}
		for _, e := range m.Judged.Evidence {
			x.Evidence = append(x.Evidence, store.Evidence(e))
		}
		out.Mistakes = append(out.Mistakes, x)
	}
	return out, err
}
