package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
)

// fanout is one or more rounds of requests to all peers that have slices: a query, or a hunt for
// copies.
type fanout struct {
	en     *Engine
	assign map[string][]partition.Slice // by peer: the slices that it is asked about
	zones  map[string]partition.Zone    // the members that are asked for their whole zone

	mu       sync.Mutex
	answered map[string]bool                     // by peer, with the reason; not asked again
	failed   map[string]string                   // by peer: asked about, but missing
	lost     map[string]map[partition.Slice]bool // by peer: requested, but missing in its response
	stale    bool                                // the index of some peer is behind its store
}

func (en *Engine) newFanout() *fanout {
	return &fanout{en: en, assign: en.assignment(), answered: map[string]bool{}, failed: map[string]string{},
		lost: map[string]map[partition.Slice]bool{}}
}

// assignment gives every slice to one live replica: to the owner if it is alive (I8).
func (en *Engine) assignment() map[string][]partition.Slice {
	out := en.o.Quorum.Assignment()
	for id, ss := range out {
		if en.swarm.Alive(id) || id == en.o.ID {
			continue
		}
		var left []partition.Slice
		for _, s := range ss {
			other := ""
			for _, k := range en.o.Quorum.ReplicaSet(s).Replicas {
				if other == "" && en.swarm.Alive(k) {
					other = k
				}
			}
			if other == "" {
				left = append(left, s)
			} else {
				out[other] = append(out[other], s)
			}
		}
		if out[id] = left; len(left) == 0 {
			delete(out, id)
		}
	}
	return out
}

// question is what one peer is asked about in a round: slices, or its whole zone.
type question struct {
	peer   string
	slices []partition.Slice
	zone   partition.Zone // 0 = the request names the slices
}

// wireSlices returns the slices in wire form, or nil when the question is for a whole zone.
func (q question) wireSlices() []uint64 {
	if q.zone != 0 {
		return nil
	}
	return call.AppendSlices(make([]uint64, 0, len(q.slices)), q.slices)
}

// scope is the set of slices that a response may contain.
type scope struct{ asked, missing map[partition.Slice]bool }

// has reports whether a response may contain something of sl.
func (s scope) has(sl partition.Slice) bool { return s.asked[sl] && !s.missing[sl] }

// scope checks that a response reports only requested slices as missing (I8).
func (q question) scope(missing []uint64) (scope, error) {
	s := scope{make(map[partition.Slice]bool, len(q.slices)), make(map[partition.Slice]bool, len(missing))}
	for _, sl := range q.slices {
		s.asked[sl] = true
	}
	for _, m := range missing {
		if !s.asked[partition.Slice(m)] {
			return s, errors.New("it says it misses what it was not asked for")
		}
		s.missing[partition.Slice(m)] = true
	}
	return s, nil
}

// questions returns the questions of a round, one for each peer that has not failed. If again is
// set, they include the slices that were missing in an earlier round.
func (f *fanout) questions(again bool) (out []question) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for peer, sls := range f.assign {
		q := question{peer: peer, slices: sls, zone: f.zones[peer]}
		if lost := f.lost[peer]; q.zone == 0 && !again && len(lost) > 0 {
			q.slices = nil
			for _, sl := range sls {
				if !lost[sl] {
					q.slices = append(q.slices, sl)
				}
			}
		}
		if _, failed := f.failed[peer]; !failed && len(q.slices) > 0 {
			out = append(out, q)
		}
	}
	return out
}

// answerGrace is how long a round continues after its deadline for responses that are just in time.
// A peer that is later is reported as missing. That includes this peer itself: it may wait for a
// lock that knows no deadline.
const answerGrace = 100 * time.Millisecond

// round sends all questions at once. send asks one peer. take gets each response, with f.mu held;
// round never calls it after it returned. A peer that returns an error, or does not respond in
// time, has failed.
func round[A any](ctx context.Context, f *fanout, questions []question, until time.Time,
	send func(context.Context, question) (A, error), take func(question, A) error) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	var wg sync.WaitGroup
	waiting := make(map[string]bool, len(questions)) // peers without a response; nil = over
	for _, q := range questions {
		waiting[q.peer] = true
	}
	for _, q := range questions {
		wg.Go(func() {
			a, err := send(ctx, q)
			f.mu.Lock()
			defer f.mu.Unlock()
			if waiting == nil {
				return
			}
			delete(waiting, q.peer)
			if err == nil {
				err = take(q, a)
			}
			if err != nil {
				f.failed[q.peer] = f.en.Reason(ctx, q.peer, err)
			} else {
				f.answered[q.peer] = true
			}
		})
	}
	await(ctx, &wg)
	f.mu.Lock()
	defer f.mu.Unlock()
	for peer := range waiting {
		f.failed[peer] = f.en.Reason(ctx, peer, ctx.Err())
	}
	waiting = nil
}

// await waits for wg, but at most until answerGrace after ctx ends.
func await(ctx context.Context, wg *sync.WaitGroup) {
	all := make(chan struct{})
	go func() {
		wg.Wait()
		close(all)
	}()
	select {
	case <-all:
		return
	case <-ctx.Done():
	}
	select {
	case <-all:
	case <-time.After(answerGrace):
	}
}

// ask sends a request to another peer. An error that does not come from that peer wraps errBroken.
func (en *Engine) ask(ctx context.Context, peer string, req *wire.Request) (*wire.Response, error) {
	resp, err := en.swarm.Call(ctx, peer, req)
	if err == nil || call.IsRefusal(err) || errors.Is(err, call.ErrVanished) || errors.Is(err, dht.ErrNoPeer) {
		return resp, err
	}
	return nil, fmt.Errorf("%w: %w", errBroken, err)
}

// lack notes slices that are missing in peer's response. f.mu is held.
func (f *fanout) lack(peer string, missing map[partition.Slice]bool) {
	if f.lost[peer] == nil {
		f.lost[peer] = map[partition.Slice]bool{}
	}
	maps.Copy(f.lost[peer], missing)
}

// missing returns all slices that no peer answered for, in wire form.
func (f *fanout) missing() (out []uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for peer, sls := range f.assign {
		if _, failed := f.failed[peer]; failed {
			out = call.AppendSlices(out, sls)
			continue
		}
		for sl := range f.lost[peer] {
			out = append(out, uint64(sl))
		}
	}
	return out
}

// coverage returns how many slices were answered for, and why the others were not.
func (f *fanout) coverage() api.Coverage {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := api.Coverage{Stale: f.stale, Missing: []api.Missing{}}
	for peer, sls := range f.assign {
		c.SlicesTotal += len(sls)
		lost := f.lost[peer]
		if len(lost) > 0 {
			c.Missing = append(c.Missing, f.en.whyMissing(peer, slices.Collect(maps.Keys(lost)))...)
		}
		if why, failed := f.failed[peer]; failed {
			c.Missing = append(c.Missing, api.Missing{Peer: peer, Reason: why, Slices: len(sls) - len(lost)})
		} else if f.answered[peer] {
			c.SlicesAnswered += len(sls) - len(lost)
		}
	}
	slices.SortStableFunc(c.Missing, func(a, b api.Missing) int { return cmp.Compare(a.Peer, b.Peer) })
	return c
}
