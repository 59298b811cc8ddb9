package search

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
)

// The ranking depends neither on which peers hold what nor on which responds first (I8).
func TestI8MergeIsOrderIndependent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 60).Draw(t, "hits")
		var all []api.Hit
		for i := range n {
			all = append(all, api.Hit{Key: partition.Key(fmt.Sprintf("web:http://a/%d", i)),
				Score: float64(rapid.IntRange(0, 5).Draw(t, "score"))})
		}
		offset, limit := rapid.IntRange(0, 30).Draw(t, "offset"), rapid.IntRange(0, 30).Draw(t, "limit")
		whole := mergeHits([][]api.Hit{all}, offset, limit)

		peers := make([][]api.Hit, rapid.IntRange(1, 5).Draw(t, "peers"))
		for _, h := range all {
			p := rapid.IntRange(0, len(peers)-1).Draw(t, "peer")
			peers[p] = append(peers[p], h)
			if rapid.Bool().Draw(t, "twice") { // a replica answers too
				q := rapid.IntRange(0, len(peers)-1).Draw(t, "replica")
				peers[q] = append(peers[q], h)
			}
		}
		seed := rapid.Uint64().Draw(t, "order")
		r := rand.New(rand.NewPCG(seed, 1))
		r.Shuffle(len(peers), func(i, j int) { peers[i], peers[j] = peers[j], peers[i] })
		for _, p := range peers {
			r.Shuffle(len(p), func(i, j int) { p[i], p[j] = p[j], p[i] })
		}
		if d := cmp.Diff(whole, mergeHits(peers, offset, limit)); d != "" {
			t.Fatalf("another ranking when spread over %d peers:\n%s", len(peers), d)
		}
		if len(whole) != max(0, min(limit, n-offset)) {
			t.Fatalf("%d hits in the window [%d, +%d) of %d", len(whole), offset, limit, n)
		}
	})
}

func TestCursor(t *testing.T) {
	c := cursor{Q: "água -fria", Offset: 20}.String()
	if got, err := parseCursor(c, "água -fria"); err != nil || got.Offset != 20 || got.After != nil {
		t.Fatalf("got %+v, %v", got, err)
	}
	far := cursor{Q: "água -fria", After: &afterward{Score: 0.1 + 0.2, Key: "web:https://a.example/", Post: "p"}}
	if got, err := parseCursor(far.String(), "água -fria"); err != nil || got.After == nil ||
		*got.After != *far.After {
		t.Fatalf("got %+v, %v", got, err)
	}
	for name, bad := range map[string]string{"another query's": cursor{Q: "x", Offset: 1}.String(),
		"beyond the cap": cursor{Q: "água -fria", Offset: MaxHits}.String(),
		"after no Key":   cursor{Q: "água -fria", After: &afterward{Key: "nonsense"}}.String(),
		"negative":       cursor{Q: "água -fria", Offset: -1}.String(), "no base64": "%%%", "no JSON": "AAAA"} {
		if _, err := parseCursor(bad, "água -fria"); err == nil {
			t.Errorf("a cursor that is %s was taken", name)
		}
	}
}

func FuzzCursor(f *testing.F) {
	f.Add(cursor{Q: "a", Offset: 3}.String(), "a")
	f.Fuzz(func(t *testing.T, text, q string) {
		if c, err := parseCursor(text, q); err == nil && (c.Offset < 0 || c.Offset >= MaxHits) {
			t.Fatalf("offset %d", c.Offset)
		}
	})
}
