package member

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/partition"
)

func viewOf(ids ...string) partition.View {
	var ms []partition.Member
	for _, id := range ids {
		ms = append(ms, partition.Member{ID: id, Capacity: 1})
	}
	return partition.NewView(ms)
}

// A hundred identities that appear at once change nothing at once: an established swarm of
// eight at most doubles within 30 seconds.
func TestHundredNewIdentitiesAtOnce(t *testing.T) {
	now := time.Unix(1000, 0)
	var old []string
	for i := range 8 {
		old = append(old, fmt.Sprint("old", i))
	}
	n := NewNewcomers(NewcomerLimits{}, "old0", old...)
	all := append([]string(nil), old...)
	for i := range 100 {
		all = append(all, fmt.Sprintf("new%02d", i))
	}
	want := []int{16, 32, 64, 108}
	for i, members := range want {
		v, waiting := n.Allow(viewOf(all...), now)
		if v.Len() != members || waiting != 108-members {
			t.Fatalf("window %d: %d members and %d waiting, want %d", i, v.Len(), waiting, members)
		}
		for _, id := range old {
			if _, ok := v.Find(id); !ok {
				t.Fatalf("%s is no member any more", id)
			}
		}
		// Within the window nothing more happens, however often Allow is called.
		for range 3 {
			now = now.Add(9 * time.Second)
			if v, _ := n.Allow(viewOf(all...), now); v.Len() != members {
				t.Fatalf("window %d: %d members", i, v.Len())
			}
		}
		if next := n.Next(); members < 108 && !next.Equal(now.Add(3*time.Second)) {
			t.Fatalf("window %d: next at %s, now %s", i, next, now)
		}
		now = now.Add(3 * time.Second)
	}
	if !n.Next().IsZero() {
		t.Fatal("somebody still waits")
	}
}

// A member that left and comes back is no newcomer. After an hour it is one.
func TestReturningMembersDoNotWait(t *testing.T) {
	now := time.Unix(1000, 0)
	n := NewNewcomers(NewcomerLimits{Least: 1}, "self")
	step := func(wait time.Duration, want int, ids ...string) {
		t.Helper()
		now = now.Add(wait)
		if v, _ := n.Allow(viewOf(ids...), now); v.Len() != want {
			t.Fatalf("%d members, want %d", v.Len(), want)
		}
	}
	step(0, 2, "self", "a", "b") // a enters, b waits
	step(30*time.Second, 3, "self", "a", "b")
	step(time.Second, 1, "self")
	step(59*time.Minute, 3, "self", "a", "b")
	step(time.Second, 1, "self")
	step(2*time.Hour, 2, "self", "a", "b")
	step(time.Second, 2, "self", "a", "b", "c")
	n.Trust(now, "c")
	step(time.Second, 4, "self", "a", "b", "c") // with c established there is room for b
	step(3*time.Hour, 4, "self", "a", "b", "c") // live all the time, though nothing changed
}

// Property: for any sequence of Views, no member enters that is not live, the limit holds in
// every window, and memory is bounded.
func TestNewcomersKeepTheirLimit(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		limits := NewcomerLimits{Least: 2, Window: 30 * time.Second, Keep: 5 * time.Minute, MaxKnown: 40}
		n := NewNewcomers(limits, "self")
		now := time.Unix(1000, 0)
		in := map[string]bool{"self": true}
		type entered struct {
			at    time.Time
			limit int
		}
		var entries []entered
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(r, "s")) * time.Second)
			ids := []string{"self"}
			for _, k := range rapid.SliceOfNDistinct(rapid.IntRange(0, 200), 0, 30, rapid.ID[int]).Draw(r, "live") {
				ids = append(ids, fmt.Sprint("p", k))
			}
			live := viewOf(ids...)
			v, waiting := n.Allow(live, now)
			if v.Len()+waiting != live.Len() {
				r.Fatalf("%d in, %d waiting of %d", v.Len(), waiting, live.Len())
			}
			fresh := 0
			for _, m := range v.Members() {
				if _, ok := live.Find(m.ID); !ok {
					r.Fatalf("%s is not live", m.ID)
				}
				if !in[m.ID] {
					fresh++
				}
				in[m.ID] = true
			}
			limit := max(limits.Least, v.Len()-fresh)
			for range fresh {
				entries = append(entries, entered{now, limit})
			}
			recent := 0
			for _, e := range entries {
				if now.Sub(e.at) < limits.Window {
					recent++
				}
			}
			if fresh > 0 && recent > limit {
				r.Fatalf("%d entered within a window, the limit was %d", recent, limit)
			}
			if len(n.entered) > limits.MaxKnown+live.Len() {
				r.Fatalf("%d identities remembered", len(n.entered))
			}
		}
	})
}
