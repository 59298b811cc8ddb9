package api

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

func notBuilt(what string) error { return fmt.Errorf("%s: %w peer", what, ErrNotBuilt) }

// Complete returns p with every nil function replaced by one that returns ErrNotBuilt. A nil
// Metrics then returns no samples, and a nil Ready returns nil. So callers need no nil checks.
func (p Peer) Complete() Peer {
	if p.Status == nil {
		p.Status = func(context.Context) (Status, error) { return Status{}, notBuilt("status") }
	}
	if p.Peers == nil {
		p.Peers = func(context.Context) ([]PeerInfo, error) { return nil, notBuilt("peers") }
	}
	if p.Owner == nil {
		p.Owner = func(context.Context, partition.Key) (Owner, error) { return Owner{}, notBuilt("owner") }
	}
	if p.Show == nil {
		p.Show = func(context.Context, partition.Key) (Shown, error) { return Shown{}, notBuilt("records") }
	}
	if p.Overrule == nil {
		p.Overrule = func(context.Context, store.Override) error { return notBuilt("overrides") }
	}
	if p.Release == nil {
		p.Release = func(context.Context, partition.Key, string) error { return notBuilt("quarantine") }
	}
	if p.Again == nil {
		p.Again = func(context.Context, partition.Key) error { return notBuilt("seeds, again") }
	}
	if p.Quarantine == nil {
		p.Quarantine = func(context.Context) (Quarantine, error) { return Quarantine{}, notBuilt("quarantine") }
	}
	if p.Mistakes == nil {
		p.Mistakes = func(context.Context) (Mistakes, error) { return Mistakes{}, notBuilt("mistakes") }
	}
	if p.Seed == nil {
		p.Seed = func(context.Context, []partition.Key) ([]SeedAnswer, error) { return nil, notBuilt("seeds") }
	}
	if p.Query == nil {
		p.Query = func(context.Context, Query) (Answer, error) { return Answer{}, notBuilt("query") }
	}
	if p.Copies == nil {
		p.Copies = func(context.Context, partition.Key, string) (CopyGroup, error) {
			return CopyGroup{}, notBuilt("copies")
		}
	}
	if p.Recent == nil {
		p.Recent = func(context.Context, int) ([]Hit, error) { return nil, notBuilt("recent records") }
	}
	if p.Gaps == nil {
		p.Gaps = func(context.Context, GapQuery) (GapAnswer, error) { return GapAnswer{}, notBuilt("gaps") }
	}
	if p.Export == nil {
		p.Export = func(context.Context, Export, func(store.Record, string) error) ([]Missing, error) {
			return nil, notBuilt("export")
		}
	}
	if p.Errors == nil {
		p.Errors = func(context.Context) ([]Failure, error) { return nil, notBuilt("errors") }
	}
	if p.Map == nil {
		p.Map = func(context.Context) (json.RawMessage, error) { return nil, notBuilt("map") }
	}
	if p.Metrics == nil {
		p.Metrics = func() []Metric { return nil }
	}
	if p.Ready == nil {
		p.Ready = func() error { return nil }
	}
	return p
}
