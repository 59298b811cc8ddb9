package service

import (
	"context"
	"encoding/json"
	"testing"
)

// Bytes that are not a Checkpoint are rejected; a valid Checkpoint is re-encoded unchanged.
func FuzzCheckpoint(f *testing.F) {
	page := func(context.Context, EdgeList, string) (Page[string], error) { return Page[string]{}, nil }
	e, err := NewEdges("x", EdgeList{ID: "1", Side: Followers, Claimed: 3}, Limits{}, page)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(e.Checkpoint()))
	f.Add([]byte(`{"v":1,"id":"1","side":"followers","trail":{"pages":-1}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ResumeEdges("x", b, Limits{}, page)
		if err != nil {
			return
		}
		again, err := ResumeEdges("x", e.Checkpoint(), Limits{}, page)
		if err != nil || again.Listing() != e.Listing() || again.Of() != e.Of() {
			t.Errorf("%s: %v", b, err)
		}
	})
}

// Bytes that are not a Mark are rejected. A reading from a valid Mark ends, with any responses.
func FuzzMark(f *testing.F) {
	f.Add(Mark{V: MarkVersion, Recent: []Seen{{ID: "5"}, {ID: "4"}}, From: "4", Wide: 3}.Encode(), []byte(`["6","7"]`))
	f.Add(Mark{V: MarkVersion, Walk: &Walk{Base: []Seen{{ID: "2"}}, Top: []Seen{{ID: "9"}}, Last: Seen{ID: "8"},
		Trail: Trail{Cursor: "x", Power: 2}}}.Encode(), []byte(`["8","7","3"]`))
	f.Fuzz(func(t *testing.T, b, items []byte) {
		m, err := DecodeMark(b)
		if err != nil {
			return
		}
		var ids []string
		if json.Unmarshal(items, &ids) != nil {
			return
		}
		n := 0
		page := func(context.Context) (Page[string], error) {
			n++
			p := Page[string]{Asked: 3, Next: string(rune('a' + n%20))}
			if len(ids) > 0 {
				p.Items = []string{ids[n%len(ids)], ids[(2*n)%len(ids)]}
				p.IDs = []string{p.Items[0], p.Items[1]}
			}
			return p, nil
		}
		tl, err := NewTimeline(Feed[string]{Service: "x",
			Down:  func(ctx context.Context, _ string, _ Seen) (Page[string], error) { return page(ctx) },
			Up:    func(ctx context.Context, _ string) (Page[string], error) { return page(ctx) },
			Below: func(last Seen) string { return last.ID }, Seen: func(s string) Seen { return Seen{ID: s} },
		}, m, Reading{Limits: Limits{Pages: 200}})
		if err != nil {
			t.Fatal(err)
		}
		for !tl.Done() {
			if _, err := tl.Next(context.Background()); err != nil || n > 1000 {
				t.Fatalf("%s, %s: after %d pages: %v", b, items, n, err)
			}
		}
	})
}
