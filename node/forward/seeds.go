package forward

import (
	"context"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// MaxSeeds is the most seeds in one request.
const MaxSeeds = 100_000

// Seeding reports whether a call of Seed or SeedUntilDone is under way.
func (f *Forwarder) Seeding() bool { return f.seeding.Load() > 0 }

// Seed admits keys at their registrars. For 8 s it asks an unreachable owner again. A key without a
// final answer gets "busy" and is not stored here, so the caller must seed it again.
func (f *Forwarder) Seed(ctx context.Context, keys []partition.Key) ([]api.SeedAnswer, error) {
	f.seeding.Add(1)
	defer f.seeding.Add(-1)
	out := make([]api.SeedAnswer, len(keys))
	open := make([]int, len(keys))
	for i, k := range keys {
		out[i], open[i] = api.SeedAnswer{Key: string(k), Answer: "busy"}, i
	}
	deadline := time.Now().Add(8 * time.Second)
	for {
		if err := f.seedRound(ctx, keys, open, out); err != nil {
			return nil, err
		}
		var still []int
		for _, i := range open {
			if out[i].Answer == "busy" {
				still = append(still, i)
			}
		}
		open = still
		if len(open) == 0 || time.Now().After(deadline) {
			return out, nil
		}
		if !call.Sleep(ctx, 250*time.Millisecond, nil) {
			return out, nil
		}
	}
}

// seedRound sends the keys with the indices open once to their owners, and writes the answers to
// out.
func (f *Forwarder) seedRound(ctx context.Context, keys []partition.Key, open []int, out []api.SeedAnswer) error {
	byOwner := map[string][]int{}
	for _, i := range open {
		o := f.OwnerOf(f.o.Store.SliceOf(keys[i]))
		out[i].Owner = o
		byOwner[o] = append(byOwner[o], i)
	}
	for owner, idx := range byOwner {
		for len(idx) > 0 {
			batch := idx[:min(len(idx), MaxLinks)]
			idx = idx[len(batch):]
			items := make([]store.Admission, len(batch))
			for j, i := range batch {
				items[j] = store.Admission{Key: keys[i], Seed: true}
			}
			vs, err := f.Ask(ctx, owner, items)
			if err != nil {
				return err
			}
			for j, i := range batch {
				out[i].Answer, out[i].Reason = answerWord(vs[j].Answer), vs[j].Reason
			}
		}
	}
	return nil
}

// Ask has owner admit items. If owner cannot be reached, every answer is busy, with the reason. The
// error comes from the store alone.
func (f *Forwarder) Ask(ctx context.Context, owner string, items []store.Admission) ([]Verdict, error) {
	vs, _, err := f.ask(ctx, owner, items)
	if !unanswered(err) {
		return vs, err
	}
	why := "no member owns that slice yet"
	if owner != "" {
		why = f.o.Reasons.Reason(ctx, owner, err)
	}
	vs = make([]Verdict, len(items))
	for i := range vs {
		vs[i] = Verdict{Answer: wire.ForwardAck_ANSWER_BUSY, Reason: why}
	}
	return vs, nil
}

func answerWord(a wire.ForwardAck_Answer) string {
	switch a {
	case wire.ForwardAck_ANSWER_ADMITTED:
		return "admitted"
	case wire.ForwardAck_ANSWER_KNOWN:
		return "known"
	case wire.ForwardAck_ANSWER_REFUSED:
		return "refused"
	}
	return "busy"
}

// SeedUntilDone admits keys and tries again until each has a final answer or ctx ends. `run --seed`
// needs this while the swarm is still forming.
func (f *Forwarder) SeedUntilDone(ctx context.Context, keys []partition.Key) error {
	f.seeding.Add(1)
	defer f.seeding.Add(-1)
	all, refused := len(keys), 0
	for len(keys) > 0 {
		batch := keys[:min(len(keys), MaxSeeds)]
		answers, err := f.Seed(ctx, batch)
		if err != nil {
			return err
		}
		var again []partition.Key
		for i, a := range answers {
			switch a.Answer {
			case "busy":
				again = append(again, batch[i])
			case "refused":
				f.o.Logger.Warn("seed refused", "key", a.Key, "reason", a.Reason)
				refused++
			}
		}
		keys = append(again, keys[len(batch):]...)
		if len(again) > 0 {
			f.o.Logger.Info("seeds wait for their owners", "seeds", len(again))
			if !call.Sleep(ctx, time.Second, nil) {
				return ctx.Err()
			}
		}
	}
	if refused == all && all > 0 {
		return fmt.Errorf("seed: all %d seeds are refused; the log says why each", all)
	}
	return nil
}
