package hostile

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// Scene is what a hostile sender knows of the swarm. It is enough for messages that are correct
// except for one thing.
type Scene struct {
	Charter partition.Charter
	All     []partition.Slice
	Slice   partition.Slice // the slice that the messages are about
	Me      string          // the sender
	Target  string          // the peer that receives the requests
	Peers   []string        // honest peers
	Keys    []partition.Key // of Slice, with records
	Rows    []*wire.Row     // rows of Slice, as a replica has them; if necessary of forged records
	Head    uint64          // of the log of Slice
	// Spare has the slices that the sender does not attack. They are its own, and it may say
	// more about them than other peers may.
	Spare map[partition.Slice]bool
	// ReplicaSets has the ones in force, which any peer can learn.
	ReplicaSets map[partition.Slice]*wire.Config
}

// replicaSet returns a copy of the ReplicaSet of s.
func (sc *Scene) replicaSet(s partition.Slice) *wire.Config {
	c := sc.ReplicaSets[s]
	if c == nil {
		c = &wire.Config{Slice: uint64(s), Owner: sc.Charter.Founder, Keepers: []string{sc.Charter.Founder}}
	}
	return &wire.Config{Slice: uint64(s), Epoch: c.Epoch, Fork: c.Fork, Gen: c.Gen, Owner: c.Owner, Keepers: c.Keepers,
		Starts: c.Starts}
}

// Attack is one kind of bad message.
type Attack struct {
	Name string
	Make func(sc *Scene, r *rand.Rand) *wire.Request
}

func say(name string, make func(sc *Scene, r *rand.Rand) *wire.Request) Attack {
	return Attack{name, make}
}

// RightMessage returns what an honest peer in this role sends, as far as it can be known from
// outside. It returns nil when there is no such message of the kind here.
func (sc *Scene) RightMessage(kind Kind) *wire.Request {
	s := uint64(sc.Slice)
	key := string(sc.key())
	c := sc.replicaSet(sc.Slice)
	switch kind {
	case "forward":
		return &wire.Request{Body: &wire.Request_Forward{Forward: &wire.Forward{Links: []*wire.Link{{Key: key,
			Depth: 1}}}}}
	case "query":
		return &wire.Request{Body: &wire.Request_Query{Query: &wire.Query{Q: "vila", Slices: []uint64{s}, Limit: 10}}}
	case "who_owns":
		return &wire.Request{Body: &wire.Request_WhoOwns{WhoOwns: &wire.WhoOwns{Key: key}}}
	case "show":
		return &wire.Request{Body: &wire.Request_Show{Show: &wire.Show{Key: key}}}
	case "status":
		return &wire.Request{Body: &wire.Request_Status{Status: &wire.Status{}}}
	case "records":
		return &wire.Request{Body: &wire.Request_Records{Records: &wire.Records{Limit: 10}}}
	case "lease":
		return &wire.Request{Body: &wire.Request_Lease{Lease: &wire.Lease{Count: 1, List: true,
			Configs: []*wire.Config{c}}}}
	case "ballots":
		p := &wire.Proposal{Base: c, Ballot: 2, By: sc.Me}
		return &wire.Request{Body: &wire.Request_Ballots{Ballots: &wire.Ballots{Proposals: []*wire.Proposal{p}}}}
	case "configs":
		return &wire.Request{Body: &wire.Request_Configs{Configs: &wire.Configs{Want: true, Digest: 1}}}
	case "ship":
		p := &wire.Piece{Slice: s, Epoch: c.Epoch, Fork: c.Fork, Gen: c.Gen, Kind: wire.Piece_KIND_PROBE}
		return &wire.Request{Body: &wire.Request_Ship{Ship: &wire.Ship{Pieces: []*wire.Piece{p}}}}
	case "compare":
		return &wire.Request{Body: &wire.Request_Compare{Compare: &wire.Compare{Slice: s}}}
	case "unite":
		return &wire.Request{Body: &wire.Request_Unite{Unite: &wire.Unite{Slice: s}}}
	case "turns":
		return &wire.Request{Body: &wire.Request_Turns{Turns: &wire.Turns{Asks: []*wire.TurnAsk{{Address: "127.77.0.1",
			GapMs: 1000, Want: true, Turn: 7}}}}}
	case "overrule":
		return sc.override("in")
	case "copies":
		return &wire.Request{Body: &wire.Request_Copies{Copies: &wire.Copies{Slices: []uint64{s}, Key: key}}}
	}
	return nil
}

func (sc *Scene) key() partition.Key {
	if len(sc.Keys) > 0 {
		return sc.Keys[0]
	}
	return "web:http://127.77.0.1/"
}

func (sc *Scene) override(verdict string) *wire.Request {
	b, err := json.Marshal(store.Override{V: store.OverrideVersion, Key: "mastodon:victim@m.example", Verdict: verdict,
		By: "the operator", Why: "x", At: time.Now().UTC(), Peer: sc.Target})
	if err != nil {
		panic("hostile: " + err.Error())
	}
	return &wire.Request{Body: &wire.Request_Overrule{Overrule: &wire.Overrule{Override: b}}}
}

// theft returns a ReplicaSet for every slice, changed in favour of the sender.
func (sc *Scene) theft(change func(c *wire.Config)) []*wire.Config {
	var out []*wire.Config
	for _, s := range sc.All {
		if sc.Spare[s] {
			continue
		}
		c := sc.replicaSet(s)
		c.Owner, c.Keepers, c.Starts = sc.Me, []string{sc.Me}, nil
		change(c)
		out = append(out, c)
	}
	return out
}

// Thefts returns the ways to forge a ReplicaSet.
func (sc *Scene) Thefts() map[string][]*wire.Config {
	keep := func(c *wire.Config) []string { return sc.replicaSet(partition.Slice(c.Slice)).Keepers }
	return map[string][]*wire.Config{
		"the next generation": sc.theft(func(c *wire.Config) { c.Gen++ }),
		"the next generation with the same replicas": sc.theft(func(c *wire.Config) {
			c.Gen++
			c.Keepers = append(keep(c), sc.Me)[max(0, len(keep(c))-2):]
		}),
		"generation 2^62": sc.theft(func(c *wire.Config) { c.Gen = 1 << 62 }),
		"the next epoch": sc.theft(func(c *wire.Config) {
			c.Epoch++
			c.Fork, c.Gen = sc.Me,
				0
		}),
		"the next epoch, in another's name": sc.theft(func(c *wire.Config) {
			c.Epoch++
			c.Fork,
				c.Gen = sc.Target, 0
		}),
		"epoch 2^62": sc.theft(func(c *wire.Config) {
			c.Epoch, c.Fork, c.Gen = 1<<62,
				sc.Me, 0
		}),
		"epoch 2^64-1": sc.theft(func(c *wire.Config) {
			c.Epoch, c.Fork = math.MaxUint64,
				sc.Me
		}),
		"a higher fork":               sc.theft(func(c *wire.Config) { c.Fork = "~" + sc.Me }),
		"the same with another owner": sc.theft(func(*wire.Config) {}),
		"an owner who keeps nothing":  sc.theft(func(c *wire.Config) { c.Gen++; c.Keepers = keep(c) }),
		"the target as the only replica": sc.theft(func(c *wire.Config) {
			c.Gen++
			c.Owner,
				c.Keepers = sc.Target, []string{sc.Target}
		}),
		"nobody": sc.theft(func(c *wire.Config) {
			c.Gen++
			c.Owner,
				c.Keepers = "nobody", []string{"nobody"}
		}),
	}
}

// ForgedRows returns rows of the scene's slice about a fetch that never happened. One is a
// record with target as the fetching peer and at as the time. With gone, the rows also say that
// the page is gone.
func (sc *Scene) ForgedRows(at time.Time, gone bool) ([]*wire.Row, error) {
	s, err := db.Create("forge", store.Options{FS: vfs.NewMem(), Charter: sc.Charter, CacheMiB: 1})
	if err != nil {
		return nil, err
	}
	k := sc.key()
	sl := s.SliceOf(k)
	_, err = s.Queue.Admit([]store.Admission{{Key: k}}, at)
	c := store.Commit{Key: k, Now: at, Next: store.Next{State: store.StateDone}}
	if gone {
		c.Next = store.Next{State: store.StateGone, Reason: "status 410"}
	} else {
		c.Record = &store.Record{V: store.RecordVersion, Key: k, Kind: store.KindPage, URL: k.URL(), FetchedAt: at,
			Source: "web", Peer: sc.Target, Status: 200, Title: "forged \x1b]0;x\x07", Text: "send your money to evil"}
	}
	if err == nil {
		err = s.Commit(c)
	}
	var out []*wire.Row
	if err == nil {
		var rows []store.Row
		rows, _, err = s.Log.SliceRows(sl, nil, 1<<20)
		for _, r := range rows {
			out = append(out, &wire.Row{Key: r.Key, Value: r.Value})
		}
	}
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, fmt.Errorf("hostile: forging rows: %w", err)
	}
	return out, nil
}
