package duplicates

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// circleOf builds the Collector of p. Each of holders has a part of the fingerprints.
func circleOf(opts Options, p Fingerprint, holders [][]Fingerprint) *Collector {
	c := NewCollector(opts, p)
	for next := c.Next(3); len(next) > 0; next = c.Next(3) {
		for _, held := range holders {
			for _, q := range held {
				if slices.ContainsFunc(next, func(p Fingerprint) bool { _, ok := opts.Meets(p, q); return ok }) {
					c.Add(q)
				}
			}
		}
	}
	return c
}

func groupWith(groups []Group, id string) Group {
	for _, g := range groups {
		if slices.ContainsFunc(g, func(m Member) bool { return m.ID == id }) {
			return g
		}
	}
	return nil
}

// For any member and any distribution of the texts over peers, a text's group is the one that a
// peer with all texts finds.
func TestCircleFindsTheGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := newRand(rapid.Uint64().Draw(t, "seed"))
		opts := Options{Paper: rapid.Bool().Draw(t, "paper")}
		texts := corpus(rng, 20)
		want := GroupAll(slices.Values(texts), opts)
		holders := make([][]Fingerprint, 1+rng.IntN(5))
		for _, text := range texts {
			at := rng.IntN(len(holders))
			holders[at] = append(holders[at], NewFingerprint(text))
		}
		for _, text := range texts {
			c := circleOf(opts, NewFingerprint(text), holders)
			if diff := cmp.Diff(groupWith(want, text.ID), groupWith(c.Groups(), text.ID)); diff != "" || c.Cut() {
				t.Fatalf("of %s, cut %v: %s", text.ID, c.Cut(), diff)
			}
		}
	})
}

// A text that very many texts copy costs no more than the limits allow. The result says that there
// may be other copies.
func TestCircleIsBounded(t *testing.T) {
	const text = "o farol da vila foi pintado de branco na primavera"
	c := NewCollector(Options{}, NewFingerprint(Text{ID: "0", Text: text}))
	for i := range 2 * MaxCollected {
		c.Add(NewFingerprint(Text{ID: fmt.Sprint(i), Time: int64(i), Text: text}))
	}
	if asked := c.Next(10); len(asked) != 1 || len(c.Next(10)) != 0 || !c.Cut() {
		t.Errorf("%d of equal texts are asked for, cut %v", len(asked), c.Cut())
	}
	if g := c.Groups(); len(g) != 1 || len(g[0]) != MaxCollected {
		t.Errorf("%d groups, the first of %d", len(g), len(g[0]))
	}
	c = NewCollector(Options{}, NewFingerprint(Text{ID: "0", Text: text}))
	asked := 0
	for i := range 2 * MaxAsked {
		c.Add(NewFingerprint(Text{ID: fmt.Sprint("x", i), Text: text + strings.Repeat(" sim", i)}))
		asked += len(c.Next(10))
	}
	if asked != MaxAsked || !c.Cut() {
		t.Errorf("%d different texts are asked for, cut %v", asked, c.Cut())
	}
}
