package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/echo-node/echo-node/crawler/judge/duplicates"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/call"
	"github.com/echo-node/echo-node/partition"
)

// hunt asks all peers for texts, in several rounds.
type hunt struct {
	*fanout
	until time.Time
	found []found // of this round
	more  bool
}

func (en *Engine) newHunt(until time.Time) *hunt { return &hunt{fanout: en.newFanout(), until: until} }

// found is one text of a response. Its fingerprint has an ID only if the response has a Print.
type found struct {
	*wire.Copy
	key         partition.Key
	fingerprint duplicates.Fingerprint
}

// textName returns the unique name of a text. It also orders texts of the same time.
func textName(k partition.Key, post string) string {
	if post == "" {
		return string(k)
	}
	return string(k) + " " + post
}

// ask sends w to all peers and returns the texts of their responses, ordered by name. It asks again
// about slices that were missing earlier, because they may be in the index by now.
func (h *hunt) ask(ctx context.Context, w *wire.Copies) []found {
	h.found = nil
	send := func(ctx context.Context, q question) (*wire.CopiesAnswer, error) {
		return h.send(ctx, q.peer, &wire.Copies{Prints: w.Prints, Key: w.Key, Post: w.Post, Slices: q.wireSlices(),
			Zone: uint64(q.zone)})
	}
	round(ctx, h.fanout, h.questions(true), h.until, send, h.take)
	slices.SortFunc(h.found, func(a, b found) int {
		return cmp.Or(cmp.Compare(textName(a.key, a.Post), textName(b.key, b.Post)),
			cmp.Compare(b.FetchedMs, a.FetchedMs))
	})
	return h.found
}

// send asks one peer, which may be this peer itself.
func (h *hunt) send(ctx context.Context, peer string, q *wire.Copies) (*wire.CopiesAnswer, error) {
	if peer == h.en.o.ID {
		return h.en.ServeCopies(ctx, q)
	}
	resp, err := h.en.ask(ctx, peer, &wire.Request{Body: &wire.Request_Copies{Copies: q}})
	if err != nil {
		return nil, err
	}
	if a := resp.GetCopies(); a != nil {
		return a, nil
	}
	return nil, call.ErrForeign
}

// take checks one peer's response. It may only contain texts of the slices that the request named
// (I8). h.mu is held.
func (h *hunt) take(q question, a *wire.CopiesAnswer) error {
	s, err := q.scope(a.Missing)
	if err != nil {
		return err
	}
	out := make([]found, 0, len(a.Found))
	words := map[uint64][]duplicates.Unit{} // by content
	for _, c := range a.Found {
		f := found{Copy: c}
		if f.key, err = partition.KeyFromWire(c.GetKey()); err != nil {
			return fmt.Errorf("its copy: %w", err)
		}
		sl, err := h.en.swarm.SliceFrom(c.Slice, f.key)
		if err != nil {
			return err
		}
		if !s.has(sl) {
			return errors.New("its copy belongs to a slice that it does not answer for")
		}
		if len(c.Print) > 0 {
			if f.fingerprint, err = duplicates.DecodeFingerprint(c.Print); err != nil {
				return fmt.Errorf("its copy: %w", err)
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
	h.found = append(h.found, out...)
	h.more, h.stale = h.more || a.More, h.stale || a.Stale
	h.lack(q.peer, s.missing)
	return nil
}

// Copies returns the group of copies, in the whole swarm, that contains the record of k or the
// named post of it. For a page that declares itself a copy of another page of its domain, it
// returns the group of that other page. It returns ErrNotFound when no peer has the text, and
// ErrUnavailable when a peer that may have it is missing.
func (en *Engine) Copies(ctx context.Context, k partition.Key, post string) (api.CopyGroup, error) {
	start := time.Now()
	h := en.newHunt(start.Add(en.o.Timeout))
	h.zones = en.split(ctx, h.assign, start.Add(en.o.Timeout/4))
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
		c := duplicates.NewCollector(duplicates.Options{}, one.fingerprint)
		by := map[string]found{one.fingerprint.ID: one}
		h.around(ctx, c, by)
		out.Group, out.Members = groupOf(c.Groups(), one.fingerprint.ID, by)
		out.More = h.more || c.Cut()
	}
	if out.More {
		en.cut.Add(1)
	}
	out.Coverage = h.coverage()
	out.TookMS = float64(time.Since(start).Microseconds()) / 1000
	return out, nil
}

// named asks for one text by its name.
func (h *hunt) named(ctx context.Context, k partition.Key, post string) (found, error) {
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

// around asks for the copies of c's texts until there are no more. It puts each text into by, under
// its name.
func (h *hunt) around(ctx context.Context, c *duplicates.Collector, by map[string]found) {
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

// groupOf returns the name of the group that contains id, and the members of that group.
func groupOf(groups []duplicates.Group, id string, by map[string]found) (name string, out []api.GroupMember) {
	out = []api.GroupMember{}
	for _, g := range groups {
		if !slices.ContainsFunc(g, func(m duplicates.Member) bool { return m.ID == id }) {
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
