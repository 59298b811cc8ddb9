package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/echo-node/echo-node/crawler/focus/copies"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
)

// copyHunt asks the owners of all slices for texts, several times over.
type copyHunt struct {
	n      *Node
	assign map[string][]partition.Slice
	zones  map[string]partition.Zone // the members that are asked for their whole zone
	until  time.Time

	mu     sync.Mutex
	failed map[string]api.Missing              // by peer: not asked again
	lost   map[string]map[partition.Slice]bool // by peer: asked, not answered for
	more   bool
	stale  bool
}

func (n *Node) newCopyHunt(until time.Time) *copyHunt {
	return &copyHunt{n: n, assign: n.assignment(), until: until, failed: map[string]api.Missing{},
		lost: map[string]map[partition.Slice]bool{}}
}

// found is one text of an answer; its print has a name, and none of that no words.
type found struct {
	*wire.Copy
	key         partition.Key
	fingerprint copies.Print
}

// name is what tells a text from all others, and orders those of one time.
func textName(k partition.Key, post string) string {
	if post == "" {
		return string(k)
	}
	return string(k) + " " + post
}

// ask puts w to everybody, and gives what was found in order of name.
func (h *copyHunt) ask(ctx context.Context, w *wire.Copies) []found {
	ctx, cancel := context.WithDeadline(ctx, h.until)
	defer cancel()
	var wg sync.WaitGroup
	var all []found
	for peer, sls := range h.assign {
		h.mu.Lock()
		_, out := h.failed[peer]
		h.mu.Unlock()
		if out {
			continue
		}
		q := &wire.Copies{Prints: w.Prints, Key: w.Key, Post: w.Post}
		if zone, ok := h.zones[peer]; ok {
			q.Zone = uint64(zone)
		} else {
			q.Slices = appendSlices(nil, sls)
		}
		wg.Go(func() {
			a, err := h.put(ctx, peer, q)
			h.mu.Lock()
			defer h.mu.Unlock()
			var some []found
			if err == nil {
				some, err = h.take(peer, a, sls)
			}
			if err != nil {
				h.failed[peer] = api.Missing{Peer: peer, Reason: h.n.reason(ctx, peer, err), Slices: len(sls)}
			}
			all = append(all, some...)
		})
	}
	wg.Wait()
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(cmp.Compare(textName(a.key, a.Post), textName(b.key, b.Post)),
			cmp.Compare(b.FetchedMs, a.FetchedMs))
	})
	return all
}

func (h *copyHunt) put(ctx context.Context, peer string, q *wire.Copies) (*wire.CopiesAnswer, error) {
	if peer == h.n.id {
		return h.n.serveCopies(ctx, q)
	}
	resp, err := h.n.call(ctx, peer, &wire.Request{Body: &wire.Request_Copies{Copies: q}})
	if err != nil {
		return nil, err
	}
	if a := resp.GetCopies(); a != nil {
		return a, nil
	}
	return nil, call.ErrForeign
}

// take checks one peer's answer, which may speak of nothing but the slices it was
// asked for (I8). h.mu is held.
func (h *copyHunt) take(peer string, a *wire.CopiesAnswer, sls []partition.Slice) ([]found, error) {
	asked := make(map[partition.Slice]bool, len(sls))
	for _, sl := range sls {
		asked[sl] = true
	}
	for _, m := range a.Missing {
		if !asked[partition.Slice(m)] {
			return nil, errors.New("it says it misses what it was not asked for")
		}
	}
	out := make([]found, 0, len(a.Found))
	words := map[uint64][]copies.Unit{} // by content
	for _, c := range a.Found {
		f := found{Copy: c}
		var err error
		if f.key, err = partition.KeyFromWire(c.GetKey()); err != nil {
			return nil, fmt.Errorf("its copy: %w", err)
		}
		sl, err := h.n.sliceFrom(c.Slice, f.key)
		if err != nil {
			return nil, err
		}
		if !asked[sl] || slices.Contains(a.Missing, uint64(sl)) {
			return nil, errors.New("its copy is of a slice that it does not answer for")
		}
		if len(c.Print) > 0 {
			if f.fingerprint, err = copies.DecodePrint(c.Print); err != nil {
				return nil, fmt.Errorf("its copy: %w", err)
			}
			f.fingerprint.ID = textName(f.key, c.Post)
			if len(f.fingerprint.Units) == 0 {
				f.fingerprint.Units = words[f.fingerprint.Content]
			} else {
				words[f.fingerprint.Content] = f.fingerprint.Units
			}
		}
		out = append(out, f)
	}
	h.more, h.stale = h.more || a.More, h.stale || a.Stale
	for _, m := range a.Missing {
		if h.lost[peer] == nil {
			h.lost[peer] = map[partition.Slice]bool{}
		}
		h.lost[peer][partition.Slice(m)] = true
	}
	return out, nil
}

func (h *copyHunt) coverage() api.Coverage {
	c := api.Coverage{Stale: h.stale, Missing: []api.Missing{}}
	for peer, sls := range h.assign {
		c.SlicesTotal += len(sls)
		if m, ok := h.failed[peer]; ok {
			c.Missing = append(c.Missing, m)
			continue
		}
		lost := len(h.lost[peer])
		c.SlicesAnswered += len(sls) - lost
		if lost > 0 {
			c.Missing = append(c.Missing, h.n.whyMissing(peer, slices.Collect(maps.Keys(h.lost[peer])))...)
		}
	}
	slices.SortFunc(c.Missing, func(a, b api.Missing) int { return cmp.Compare(a.Peer, b.Peer) })
	return c
}

// Copies is the group of texts, of the whole swarm, that the record of k, or that post
// of it, is in. Of a page that declares itself a copy of another of its domain it is
// the other's. ErrNotFound: nobody has it; ErrUnavailable: who may have it is missing.
func (n *Node) Copies(ctx context.Context, k partition.Key, post string) (api.CopyGroup, error) {
	start := time.Now()
	h := n.newCopyHunt(start.Add(n.o.QueryTimeout))
	h.zones = n.splitUntil(ctx, h.assign, start.Add(n.o.QueryTimeout/4))
	out := api.CopyGroup{Key: k, Post: post, Members: []api.GroupMember{}}
	one, err := h.named(ctx, k, post)
	if err == nil && one.Canonical != "" {
		if out.Canonical, err = partition.KeyFromWire(one.Canonical); err == nil {
			one, err = h.named(ctx, out.Canonical, "")
		}
	}
	if err != nil {
		return out, err
	}
	if out.Why = clipped(one.Why, wire.MaxText); len(one.Print) > 0 {
		c := copies.NewCircle(copies.Options{}, one.fingerprint)
		by := map[string]found{one.fingerprint.ID: one}
		h.around(ctx, c, by)
		out.Group, out.Members = groupOf(c.Groups(), one.fingerprint.ID, by)
		out.More = h.more || c.Cut()
	}
	if out.More {
		n.count.copiesCut.Add(1)
	}
	out.Coverage = h.coverage()
	out.TookMS = float64(time.Since(start).Microseconds()) / 1000
	return out, nil
}

// named asks for one text by its name.
func (h *copyHunt) named(ctx context.Context, k partition.Key, post string) (found, error) {
	all := h.ask(ctx, &wire.Copies{Key: string(k), Post: post})
	at := slices.IndexFunc(all, func(f found) bool { return f.key == k && f.Post == post })
	if at >= 0 {
		return all[at], nil
	}
	if c := h.coverage(); c.SlicesAnswered < c.SlicesTotal {
		return found{}, fmt.Errorf("%w: %s: %d of %d slices answered", api.ErrUnavailable, textName(k, post),
			c.SlicesAnswered, c.SlicesTotal)
	}
	return found{}, fmt.Errorf("%w: no record of %s", api.ErrNotFound, textName(k, post))
}

// around asks for the copies of c's texts until there are no more, and notes who they
// are in by.
func (h *copyHunt) around(ctx context.Context, c *copies.Circle, by map[string]found) {
	for next := c.Next(maxHunted); len(next) > 0; next = c.Next(maxHunted) {
		w := &wire.Copies{}
		for _, p := range next {
			p.ID = ""
			w.Prints = append(w.Prints, p.Append(nil))
		}
		for _, f := range h.ask(ctx, w) {
			if _, known := by[f.fingerprint.ID]; known || len(f.fingerprint.Units) == 0 {
				continue
			}
			c.Add(f.fingerprint)
			by[f.fingerprint.ID] = f
		}
	}
}

// groupOf is the group that id is in, with what is known of its members.
func groupOf(groups []copies.Group, id string, by map[string]found) (name string, out []api.GroupMember) {
	out = []api.GroupMember{}
	for _, g := range groups {
		if !slices.ContainsFunc(g, func(m copies.Member) bool { return m.ID == id }) {
			continue
		}
		for _, m := range g {
			f := by[m.ID]
			name = m.Group
			out = append(out, api.GroupMember{Key: f.key, Post: f.Post, Title: f.Title, Peer: f.Peer,
				FetchedAt: time.UnixMilli(f.FetchedMs).UTC(),
				Reason:    string(m.Reason), Distance: m.Distance})
		}
	}
	return name, out
}

// serveZoneCopies answers for a whole zone by asking the members of it, for a peer of
// another one. What is not of this peer's own zone is missing.
func (n *Node) serveZoneCopies(ctx context.Context, w *wire.Copies) (*wire.CopiesAnswer, error) {
	until := time.Now().Add(n.o.QueryTimeout / 2)
	if at, ok := ctx.Deadline(); ok && at.Before(until) {
		until = at
	}
	h := n.newCopyHunt(until)
	a := &wire.CopiesAnswer{Missing: appendSlices(nil, n.withinZone(h.assign, partition.Zone(w.Zone)))}
	told := map[uint64]bool{}
	size := 0
	for _, f := range h.ask(ctx, w) {
		if p := f.fingerprint; len(f.Print) > 0 { // those of equal texts may be of several peers
			if told[p.Content] {
				p.Units = nil
			}
			told[p.Content] = true
			p.ID = ""
			f.Print = p.Append(nil)
		}
		if size += len(f.Print); size > maxFoundText || len(a.Found) == wire.MaxCopies {
			a.More = true
			break
		}
		a.Found = append(a.Found, f.Copy)
	}
	a.More, a.Stale = a.More || h.more, h.stale
	for peer, sls := range h.assign {
		if _, out := h.failed[peer]; out {
			a.Missing = appendSlices(a.Missing, sls)
			continue
		}
		for sl := range h.lost[peer] {
			a.Missing = append(a.Missing, uint64(sl))
		}
	}
	return a, nil
}
