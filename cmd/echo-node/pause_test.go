package main

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest"
)

// pause is longer than a lease and the finding of a death together.
const pause = 12 * time.Second

// One of three processes is stopped (SIGSTOP) and continued. It wakes with
// requests that it was about to make and leases that have run out: it makes
// none to a site that another has asked meanwhile until the site is its own
// again, so the world sees no site hurried, none asked by two peers in turn, and
// no page twice but what was in flight.
func TestAStoppedPeerWakes(t *testing.T) {
	t.Parallel()
	const delay, tolerance = 250 * time.Millisecond, 15 * time.Millisecond
	seen := &crawltest.Visits{}
	world := crawltest.NewWorld(crawltest.Options{Seed: 5, Sites: 24, Pages: 80, Words: 40, Gap: delay - tolerance,
		Seen: seen.Add})
	if err := world.Start(); err != nil {
		t.Fatal(err)
	}
	defer world.Close()
	dir := t.TempDir()
	from := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{127, 82, 0, byte(i)}) }
	var ps []*process
	for i, name := range []string{"a", "b", "c"} {
		args := []string{"--until-idle", "5s", "--allow-net", "127.77.0.0/16", "--delay", delay.String(), "--from-addr",
			from(i + 1).String()}
		if i > 0 {
			args = append(args, "--join", filepath.Join(dir, "a", "addrs"))
		}
		ps = append(ps, startProcess(t, dir, name, args...))
		ps[i].wait(i + 1)
	}
	for _, p := range ps {
		p.wait(3)
	}
	if err := ps[0].echo(new(any), append([]string{"seed"}, world.Seeds()...)...); err != nil {
		t.Fatal(err)
	}
	sleeper, address := ps[1], from(2)
	sleeper.waitFetched(40)
	if err := sleeper.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	time.Sleep(pause) // the thing itself, not a wait for something
	woke := time.Now()
	if err := sleeper.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if d := world.Compare(world.Expected(world.Seeds())); len(d.Missing) == 0 {
		t.Fatal("the crawl was over when it woke: the pause proves nothing")
	}
	for _, p := range ps {
		select {
		case err := <-p.done:
			if err != nil {
				t.Errorf("%s: %v", p.name, err)
			}
		case <-time.After(90 * time.Second):
			t.Fatalf("%s does not end", p.name)
		}
	}
	d, r := world.Compare(world.Expected(world.Seeds())), world.Report()
	if len(d.Missing)+len(d.Extra) > 0 {
		t.Errorf("missing %v, extra %v", d.Missing, d.Extra)
	}
	if r.Hurried > 0 {
		t.Errorf("%d gaps are too short, the smallest is %s on %s", r.Hurried, r.MinGap, r.MinGapSite)
	}
	if second := d.SecondOfASite(); len(second) > 0 {
		t.Errorf("a second page of a site was fetched twice: %v", second)
	}
	lost, back, faults := judgeWaking(seen.Sorted(), address, stopped, woke)
	for _, fault := range faults {
		t.Error(fault)
	}
	if taken(lost) == 0 {
		t.Errorf("nobody took over any of the %d sites that the sleeper was crawling", len(lost))
	}
	t.Logf("%d sites were the sleeper's, %d of them were asked by others meanwhile, %d came back to it; twice %d, smallest gap %s",
		len(lost), taken(lost), back, len(d.Twice), r.MinGap)
}

// judgeWaking says which sites were the sleeper's, with true for those that
// others asked while it slept, how many of those it asked again, and what shows two
// owners. Once the sleeper is awake, a site may move on: from who took it over to the peer
// that ranks higher, and back to the sleeper. A peer that asks again after another
// has asked, or anybody after the sleeper has the site back, is a second owner.
func judgeWaking(all []crawltest.Visit, sleeper netip.Addr, stopped, woke time.Time) (lost map[int]bool, back int,
	faults []string) {
	last := map[int]netip.Addr{}
	asked := map[int][]netip.Addr{} // after the wake, and the last one before it, each run of requests once
	lost = map[int]bool{}
	for _, v := range all {
		before := last[v.Site]
		last[v.Site] = v.From
		switch {
		case v.At.Before(stopped):
			if v.From == sleeper {
				lost[v.Site] = false
			} else {
				delete(lost, v.Site)
			}
		case v.At.Before(woke):
			if _, was := lost[v.Site]; was && v.From != sleeper {
				lost[v.Site] = true
			}
		case before.IsValid() && before != v.From:
			if lost[v.Site] && v.From == sleeper {
				back++
			}
			asked[v.Site] = append(asked[v.Site], before)
			if slices.Contains(asked[v.Site], v.From) || lost[v.Site] && before == sleeper {
				faults = append(faults, fmt.Sprintf("site %d is asked by %s after %s: two owners", v.Site, v.From,
					before))
			}
		}
	}
	return lost, back, faults
}

// Sites that move on pass, sites with two owners do not.
func TestJudgeWaking(t *testing.T) {
	t.Parallel()
	const a, sleeper, c = 1, 2, 3
	from := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{127, 82, 0, byte(i)}) }
	for _, test := range []struct {
		name                  string
		first, asleep, awake  []int
		lost, wasLost, faulty bool
		back                  int
	}{
		{"taken over and given back", []int{sleeper}, []int{c}, []int{c, sleeper, sleeper}, true, true, false, 1},
		{"moved by rank before it came back", []int{sleeper}, []int{c}, []int{c, a, a, sleeper}, true, true, false, 1},
		{"kept by who took it over", []int{sleeper}, []int{c}, []int{c, a}, true, true, false, 0},
		{"not taken over", []int{sleeper}, nil, []int{sleeper, a}, true, false, false, 0},
		{"never the sleeper's", []int{sleeper, c}, []int{c}, []int{a}, false, false, false, 0},
		{"a request of before the pause", []int{sleeper}, []int{c}, []int{sleeper, c}, true, true, true, 1},
		{"the same, and moved by rank", []int{sleeper}, []int{c}, []int{sleeper, a}, true, true, true, 1},
		{"the same, and back", []int{sleeper}, []int{c}, []int{sleeper, a, sleeper}, true, true, true, 2},
		{"two others in turn", []int{sleeper}, []int{c}, []int{a, c, a}, true, true, true, 0},
		{"not taken over, in turn", []int{sleeper}, nil, []int{a, sleeper}, true, false, true, 0},
	} {
		start := time.Unix(1000, 0)
		stopped, woke := start.Add(time.Minute), start.Add(2*time.Minute)
		var all []crawltest.Visit
		add := func(at time.Time, peers []int) {
			for i, p := range peers {
				all = append(all,
					crawltest.Visit{Site: 7, From: from(p), At: at.Add(time.Duration(i+1) * time.Second)})
			}
		}
		add(start, test.first)
		add(stopped, test.asleep)
		add(woke, test.awake)
		lost, back, faults := judgeWaking(all, from(sleeper), stopped, woke)
		was, is := lost[7]
		if is != test.lost || was != test.wasLost || back != test.back || len(faults) > 0 != test.faulty {
			t.Errorf("%s: lost %v %v, back %d, faults %v", test.name, is, was, back, faults)
		}
	}
}

func taken(lost map[int]bool) (n int) {
	for _, is := range lost {
		if is {
			n++
		}
	}
	return n
}
