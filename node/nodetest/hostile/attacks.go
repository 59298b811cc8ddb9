package hostile

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

// Forgeries returns the attacks with a message of that kind. A test fails for a kind without
// attacks, which this package forgot.
func Forgeries(kind Kind) []Attack {
	switch kind {
	case "configs":
		return thefts(func(_ *Scene, stolen []*wire.Config) *wire.Request {
			return &wire.Request{Body: &wire.Request_Configs{Configs: &wire.Configs{Decided: stolen}}}
		})
	case "lease":
		return append(thefts(func(_ *Scene, stolen []*wire.Config) *wire.Request {
			return &wire.Request{Body: &wire.Request_Lease{Lease: &wire.Lease{Count: uint64(len(stolen)), List: true,
				Configs: stolen}}}
		}), thefts(func(_ *Scene, stolen []*wire.Config) *wire.Request {
			return &wire.Request{Body: &wire.Request_Lease{Lease: &wire.Lease{Count: uint64(len(stolen)), Digest: 1,
				Configs: stolen}}}
		})...)
	case "ballots":
		return ballotForgeries()
	case "ship":
		return replicateForgeries()
	case "unite":
		return reconcileForgeries()
	case "compare":
		return compareForgeries()
	case "forward":
		return forwardForgeries()
	case "turns":
		return hostLeaseForgeries()
	case "overrule":
		return []Attack{
			say("an override in the operator's name",
				func(sc *Scene, _ *rand.Rand) *wire.Request { return sc.override("out") }),
			say("an override that takes all back",
				func(sc *Scene, _ *rand.Rand) *wire.Request { return sc.override("") }),
		}
	case "query", "copies", "records", "show", "who_owns", "status":
		return readForgeries(kind)
	}
	return nil
}

// thefts returns one attack for each forged set of ReplicaSets.
func thefts(carry func(sc *Scene, stolen []*wire.Config) *wire.Request) []Attack {
	var out []Attack
	for _, name := range slices.Sorted(maps.Keys((&Scene{Charter: partition.Charter{Founder: "x"},
		All: []partition.Slice{1}}).Thefts())) {
		out = append(out, say(name,
			func(sc *Scene, _ *rand.Rand) *wire.Request { return carry(sc, sc.Thefts()[name]) }))
	}
	return out
}

func ballotForgeries() []Attack {
	ballots := func(accept bool, ps ...*wire.Proposal) *wire.Request {
		return &wire.Request{Body: &wire.Request_Ballots{Ballots: &wire.Ballots{Accept: accept, Proposals: ps}}}
	}
	next := func(sc *Scene, s partition.Slice) *wire.Config {
		c := sc.replicaSet(s)
		c.Gen++
		c.Owner, c.Keepers = sc.Me, []string{sc.Me}
		return c
	}
	out := thefts(func(sc *Scene, stolen []*wire.Config) *wire.Request {
		var ps []*wire.Proposal
		for _, c := range stolen {
			ps = append(ps, &wire.Proposal{Base: c, Ballot: 2, By: sc.Me})
		}
		return ballots(false, ps...)
	})
	return append(out,
		say("a ballot for a slice of others", func(sc *Scene, _ *rand.Rand) *wire.Request {
			return ballots(false, &wire.Proposal{Base: sc.replicaSet(sc.Slice), Ballot: 1 << 62, By: sc.Me})
		}),
		say("a ballot in the owner's name", func(sc *Scene, _ *rand.Rand) *wire.Request {
			c := sc.replicaSet(sc.Slice)
			return ballots(true, &wire.Proposal{Base: c, Ballot: 1, By: c.Owner, Next: next(sc, sc.Slice)})
		}),
		say("acceptance of what nobody prepared", func(sc *Scene, _ *rand.Rand) *wire.Request {
			return ballots(true, &wire.Proposal{Base: sc.replicaSet(sc.Slice), Ballot: 9, By: sc.Me,
				Next: next(sc, sc.Slice)})
		}),
		say("a base that the sender keeps", func(sc *Scene, _ *rand.Rand) *wire.Request {
			base := sc.replicaSet(sc.Slice)
			base.Keepers, base.Owner = []string{sc.Me, sc.Target}, sc.Me
			return ballots(true, &wire.Proposal{Base: base, Ballot: 1, By: sc.Me, Next: next(sc, sc.Slice)})
		}))
}

func replicateForgeries() []Attack {
	ship := func(change func(sc *Scene, p *wire.Piece, r *rand.Rand)) func(*Scene, *rand.Rand) *wire.Request {
		return func(sc *Scene, r *rand.Rand) *wire.Request {
			c := sc.replicaSet(sc.Slice)
			p := &wire.Piece{Slice: c.Slice, Epoch: c.Epoch, Fork: c.Fork, Gen: c.Gen, Kind: wire.Piece_KIND_TAIL,
				From: sc.Head, To: sc.Head + 1, Rows: sc.Rows}
			change(sc, p, r)
			return &wire.Request{Body: &wire.Request_Ship{Ship: &wire.Ship{Pieces: []*wire.Piece{p}}}}
		}
	}
	return []Attack{
		say("a tail of forged rows", ship(func(*Scene, *wire.Piece, *rand.Rand) {})),
		say("a copy of forged rows",
			ship(func(_ *Scene, p *wire.Piece, _ *rand.Rand) { p.Kind = wire.Piece_KIND_COPY })),
		say("a copy that is whole and empty",
			ship(func(_ *Scene, p *wire.Piece, _ *rand.Rand) {
				p.Kind, p.Rows, p.To = wire.Piece_KIND_COPIED, nil,
					1<<62
			})),
		say("a log without end", ship(func(_ *Scene, p *wire.Piece, _ *rand.Rand) { p.To = math.MaxUint64 })),
		say("a log that goes back", ship(func(_ *Scene, p *wire.Piece, _ *rand.Rand) { p.From, p.To = 1<<40, 0 })),
		say("another generation", ship(func(_ *Scene, p *wire.Piece, _ *rand.Rand) { p.Gen = 1 << 62 })),
		say("another epoch", ship(func(sc *Scene, p *wire.Piece, _ *rand.Rand) { p.Epoch, p.Fork = p.Epoch+1, sc.Me })),
		say("rows of another slice",
			ship(func(sc *Scene, p *wire.Piece, r *rand.Rand) { p.Slice = uint64(pick(r, sc.All...)) })),
	}
}

func reconcileForgeries() []Attack {
	unite := func(rows func(sc *Scene, r *rand.Rand) []*wire.Row) func(*Scene, *rand.Rand) *wire.Request {
		return func(sc *Scene, r *rand.Rand) *wire.Request {
			return &wire.Request{Body: &wire.Request_Unite{Unite: &wire.Unite{Slice: uint64(sc.Slice),
				Rows: rows(sc, r)}}}
		}
	}
	return []Attack{
		say("forged rows", unite(func(sc *Scene, _ *rand.Rand) []*wire.Row { return sc.Rows })),
		say("damaged rows", unite(func(sc *Scene, r *rand.Rand) []*wire.Row {
			var out []*wire.Row
			for _, row := range sc.Rows {
				v := slices.Clone(row.Value)
				if len(v) > 0 {
					v[r.IntN(len(v))] ^= 0xff
				}
				out = append(out, &wire.Row{Key: row.Key, Value: v})
			}
			return out
		})),
		say("rows that are no rows", unite(func(*Scene, *rand.Rand) []*wire.Row {
			return []*wire.Row{{Key: []byte("\x00format"), Value: []byte{9}},
				{Key: []byte("\x01keep/x"), Value: []byte("{}")}, {}}
		})),
		say("rows of another slice", func(sc *Scene, r *rand.Rand) *wire.Request {
			return &wire.Request{Body: &wire.Request_Unite{Unite: &wire.Unite{Slice: uint64(pick(r, sc.All...)),
				Rows: sc.Rows}}}
		}),
		say("a slice that there is not", func(sc *Scene, _ *rand.Rand) *wire.Request {
			return &wire.Request{Body: &wire.Request_Unite{Unite: &wire.Unite{Slice: math.MaxUint64, Rows: sc.Rows}}}
		}),
	}
}

func compareForgeries() []Attack {
	compare := func(make func(sc *Scene) *wire.Compare) func(*Scene, *rand.Rand) *wire.Request {
		return func(sc *Scene, _ *rand.Rand) *wire.Request {
			return &wire.Request{Body: &wire.Request_Compare{Compare: make(sc)}}
		}
	}
	return []Attack{
		say("may I drop it", compare(func(sc *Scene) *wire.Compare {
			return &wire.Compare{Slice: uint64(sc.Slice), Drop: sc.replicaSet(sc.Slice)}
		})),
		say("may I drop it, by a replica set to come", compare(func(sc *Scene) *wire.Compare {
			c := sc.replicaSet(sc.Slice)
			c.Gen++
			return &wire.Compare{Slice: uint64(sc.Slice), Drop: c}
		})),
		say("rows", compare(func(sc *Scene) *wire.Compare {
			return &wire.Compare{Slice: uint64(sc.Slice), Rows: true,
				Bucket: 255}
		})),
		say("rows from a place that there is not", compare(func(sc *Scene) *wire.Compare {
			return &wire.Compare{Slice: uint64(sc.Slice), Rows: true, After: []byte(strings.Repeat("\xff", 100))}
		})),
		say("a slice that there is not",
			compare(func(*Scene) *wire.Compare { return &wire.Compare{Slice: math.MaxUint64} })),
	}
}

func forwardForgeries() []Attack {
	links := func(ls ...*wire.Link) func(*Scene, *rand.Rand) *wire.Request {
		return func(*Scene, *rand.Rand) *wire.Request {
			return &wire.Request{Body: &wire.Request_Forward{Forward: &wire.Forward{Links: ls}}}
		}
	}
	return []Attack{
		say("keys that are none", links(&wire.Link{Key: "hello"}, &wire.Link{Key: "web:ftp://x/"},
			&wire.Link{Key: "web:http://10.0.0.1/"}, &wire.Link{Key: "web:http://[::1]/"})),
		say("seeds of its own",
			links(&wire.Link{Key: "web:http://127.0.0.1/", Seed: true, Priority: 1 << 31, Depth: 1 << 31})),
		say("a pace of its own", func(sc *Scene, _ *rand.Rand) *wire.Request {
			l := &wire.Link{Key: string(sc.key()), Slice: uint64(sc.Slice), From: uint64(sc.Slice),
				Pace: &wire.Pace{Gen: 1 << 60, NextMs: math.MaxInt64, WaitMs: math.MaxUint64,
					BackOffMs: math.MaxUint64}}
			return &wire.Request{Body: &wire.Request_Forward{Forward: &wire.Forward{Links: []*wire.Link{l},
				Hops: 1 << 30}}}
		}),
		say("hints of another site", func(sc *Scene, _ *rand.Rand) *wire.Request {
			l := &wire.Link{Key: string(sc.key()), Referrer: "web:http://127.77.9.9/", Hint: 1,
				ChangedUnix: math.MaxInt64}
			return &wire.Request{Body: &wire.Request_Forward{Forward: &wire.Forward{Links: []*wire.Link{l}}}}
		}),
	}
}

func hostLeaseForgeries() []Attack {
	turns := func(asks func(i int) *wire.TurnAsk) func(*Scene, *rand.Rand) *wire.Request {
		return func(*Scene, *rand.Rand) *wire.Request {
			t := &wire.Turns{}
			for i := range 200 {
				t.Asks = append(t.Asks, asks(i))
			}
			return &wire.Request{Body: &wire.Request_Turns{Turns: t}}
		}
	}
	addr := func(i int) string { return fmt.Sprintf("127.77.0.%d", i%250+1) }
	return []Attack{
		say("every address, slowly", turns(func(i int) *wire.TurnAsk {
			return &wire.TurnAsk{Address: addr(i), GapMs: wire.MaxTurnMs, PaceMs: wire.MaxTurnMs, Want: true,
				Turn: uint64(i + 1)}
		})),
		say("turns of others given back",
			turns(func(i int) *wire.TurnAsk {
				return &wire.TurnAsk{Address: addr(i), Back: uint64(i + 1),
					Unused: true}
			})),
		say("addresses that are none",
			turns(func(i int) *wire.TurnAsk { return &wire.TurnAsk{Address: "ip:x", Want: true, Turn: 1} })),
	}
}

// readForgeries ask for much, or for what does not exist. A request that only reads can do no
// more harm.
func readForgeries(kind Kind) []Attack {
	every := func(sc *Scene) []uint64 {
		out := []uint64{0, math.MaxUint64}
		for _, s := range sc.All {
			out = append(out, uint64(s))
		}
		return out
	}
	by := map[Kind][]Attack{
		"query": {
			say("all slices, and some that there are not", func(sc *Scene, _ *rand.Rand) *wire.Request {
				return &wire.Request{Body: &wire.Request_Query{Query: &wire.Query{Q: "a OR b OR \"", Slices: every(sc),
					Limit: wire.MaxHits}}}
			}),
			say("statistics that are none", func(sc *Scene, _ *rand.Rand) *wire.Request {
				return &wire.Request{Body: &wire.Request_Query{Query: &wire.Query{Q: "vila", Slices: every(sc)[2:],
					Stats: &wire.TermStats{Docs: math.MaxUint64, Opaque: []byte("{")}}}}
			}),
		},
		"copies": {say("all slices", func(sc *Scene, _ *rand.Rand) *wire.Request {
			return &wire.Request{Body: &wire.Request_Copies{Copies: &wire.Copies{Slices: every(sc),
				Prints: [][]byte{{1, 2, 3}}}}}
		})},
		"records": {say("all, bodies included", func(sc *Scene, _ *rand.Rand) *wire.Request {
			return &wire.Request{Body: &wire.Request_Records{Records: &wire.Records{Slices: every(sc), Captures: true,
				Limit: wire.MaxRecords, AfterPart: []byte{1}, After: string(sc.key())}}}
		})},
		"show": {say("a slice that there is not", func(sc *Scene, _ *rand.Rand) *wire.Request {
			return &wire.Request{Body: &wire.Request_Show{Show: &wire.Show{Key: string(sc.key()),
				Slice: math.MaxUint64}}}
		})},
		"who_owns": {say("no key", func(*Scene, *rand.Rand) *wire.Request {
			return &wire.Request{Body: &wire.Request_WhoOwns{WhoOwns: &wire.WhoOwns{Key: "hello"}}}
		})},
		"status": {say("with a view of its own", func(*Scene, *rand.Rand) *wire.Request {
			return &wire.Request{View: []byte("12345678"), Body: &wire.Request_Status{Status: &wire.Status{}}}
		})},
	}
	return by[kind]
}
