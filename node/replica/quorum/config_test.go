package quorum

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/partition"
)

func TestConfigValidate(t *testing.T) {
	long := strings.Repeat("x", maxID+1)
	starts := make([]Start, MaxStarts+1)
	for i := range starts {
		starts[i] = Start{uint64(i), 0}
	}
	for name, c := range map[string]struct {
		c    ReplicaSet
		want string
	}{
		"first":         {First("a"), ""},
		"most replicas": {ReplicaSet{Owner: "a", Replicas: strings.Split("abcdefg", "")}, ""},
		"none":          {ReplicaSet{Owner: "a"}, "0 replicas"},
		"too many":      {ReplicaSet{Owner: "a", Replicas: strings.Split("abcdefgh", "")}, "8 replicas"},
		"owner apart":   {ReplicaSet{Owner: "x", Replicas: []string{"a"}}, "no replica"},
		"no owner":      {ReplicaSet{Replicas: []string{"a"}}, "no replica"},
		"replica twice": {ReplicaSet{Owner: "a", Replicas: []string{"a", "b", "a"}}, "twice"},
		"empty replica": {ReplicaSet{Owner: "a", Replicas: []string{"a", ""}}, "no peer id"},
		"long replica":  {ReplicaSet{Owner: "a", Replicas: []string{"a", long}}, "no peer id"},
		"long fork":     {ReplicaSet{Fork: long, Owner: "a", Replicas: []string{"a"}}, "fork"},
		"fork that writes to a terminal": {
			ReplicaSet{Epoch: 1, Gen: 1, Fork: "\x1b]0;x\x07", Owner: "a", Replicas: []string{"a"}}, "fork"},
		"replica with a space": {ReplicaSet{Owner: "a", Replicas: []string{"a", "b c"}}, "no peer id"},
		"generation":           {ReplicaSet{Gen: 1<<62 + 1, Owner: "a", Replicas: []string{"a"}}, "range"},
		"epoch":                {ReplicaSet{Epoch: 1<<62 + 1, Owner: "a", Replicas: []string{"a"}}, "range"},
		"starts": {ReplicaSet{Gen: 99, Owner: "a", Replicas: []string{"a"}, Starts: starts},
			"33 generations"},
		"start of later": {ReplicaSet{Gen: 1, Owner: "a", Replicas: []string{"a"}, Starts: []Start{{2, 0}}},
			"order"},
		"starts backwards": {ReplicaSet{Gen: 3, Owner: "a", Replicas: []string{"a"}, Starts: []Start{{2, 0}, {1, 5}}},
			"order"},
		"a start twice": {ReplicaSet{Gen: 3, Owner: "a", Replicas: []string{"a"}, Starts: []Start{{2, 0}, {2, 5}}},
			"order"},
		"positions go down": {ReplicaSet{Gen: 3, Owner: "a", Replicas: []string{"a"}, Starts: []Start{{1, 5}, {2, 4}}},
			"order"},
		"positions stay": {ReplicaSet{Gen: 3, Owner: "a", Replicas: []string{"a"}, Starts: []Start{{1, 5}, {3, 5}}},
			""},
	} {
		err := c.c.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestConfigCompare(t *testing.T) {
	ascending := []ReplicaSet{{}, {Gen: 1}, {Gen: 9}, {Epoch: 1, Fork: "a"}, {Epoch: 1, Fork: "a", Gen: 7},
		{Epoch: 1, Fork: "b"}, {Epoch: 2, Fork: "a"}}
	for i, c := range ascending {
		for j, d := range ascending {
			if got, want := c.Compare(d), min(1, max(-1, i-j)); got != want {
				t.Errorf("%v against %v: %d, want %d", c, d, got, want)
			}
			if i != j && c.hash(1) == d.hash(1) {
				t.Errorf("%v and %v have one hash", c, d)
			}
		}
		if c.hash(1) == c.hash(2) {
			t.Errorf("%v has one hash in two slices", c)
		}
	}
}

// history is a chain of generations that can really happen. It records every log entry that
// each generation had.
type history struct {
	chain []ReplicaSet
	logs  [][]int // of each generation, at its end
}

func histories() *rapid.Generator[history] {
	return rapid.Custom(func(t *rapid.T) history {
		h := history{chain: []ReplicaSet{First("a")}}
		id := 0
		log := []int{}
		for range rapid.IntRange(0, 2*MaxStarts).Draw(t, "generations") {
			for range rapid.IntRange(0, 3).Draw(t, "written") {
				id++
				log = append(slices.Clip(log), id)
			}
			h.logs = append(h.logs, log)
			// The successor has everything that was acknowledged. That may be less than where
			// this generation began: its owner may have died at once.
			head := rapid.IntRange(0, len(log)).Draw(t, "head")
			log = log[:head:head]
			h.chain = append(h.chain, h.chain[len(h.chain)-1].Next("a", []string{"a"}, uint64(head)))
		}
		h.logs = append(h.logs, log)
		return h
	})
}

// TestCommon checks that common never overstates what a copy of an earlier generation shares
// with a later one. It must know the answer for MaxStarts generations back.
func TestCommon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := histories().Draw(t, "history")
		for _, c := range h.chain {
			if err := c.Validate(); err != nil {
				t.Fatalf("%v: %v", c, err)
			}
		}
		last := len(h.chain) - 1
		gen := rapid.IntRange(0, last).Draw(t, "gen")
		pos := rapid.IntRange(0, len(h.logs[gen])).Draw(t, "pos")
		got, ok := h.chain[last].common(uint64(gen), uint64(pos))
		if !ok {
			if last-gen <= MaxStarts {
				t.Fatalf("generation %d is not known to %v", gen, h.chain[last])
			}
			return
		}
		want := 0
		for want < pos && want < len(h.logs[last]) && h.logs[gen][want] == h.logs[last][want] {
			want++
		}
		if got != uint64(want) {
			t.Fatalf("%d of generation %d at %d are %v's, want %d", got, gen, pos, h.chain[last], want)
		}
		if _, ok := h.chain[gen].common(uint64(last), 0); ok && gen < last {
			t.Fatal("a later generation is known")
		}
	})
}

func model3() *Machine {
	return New(Options{Self: "a", Founder: "a", Slices: []partition.Slice{1, 2, 3},
		Head: func(partition.Slice) uint64 { return 0 }})
}

// FuzzLoad checks that any row is either refused or comes back unchanged.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"v":1,"c":{"n":0,"o":"a","k":["a"]},"r":{"h":true}}`))
	f.Add([]byte(`{"v":1,"c":{"e":1,"f":"b","n":7,"o":"b","k":["b","a"],"s":[{"g":6,"p":3},{"g":7,"p":9}]},"p":{"n":3,"b":"a"},"a":{"n":3,"b":"a"},"x":{"e":1,"f":"b","n":8,"o":"a","k":["a"]},"r":{}}`))
	f.Add([]byte(`{"v":2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := model3()
		if m.Load(2, b) != nil {
			return
		}
		m.dirty[1] = true
		again := m.Dirty()[2]
		n := model3()
		if err := n.Load(2, again); err != nil {
			t.Fatalf("%s became %s: %v", b, again, err)
		}
		n.dirty[1] = true
		if once := n.Dirty()[2]; string(once) != string(again) {
			t.Fatalf("%s became %s", again, once)
		}
	})
}
