package main

import (
	"net/netip"
	"path/filepath"
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
	lost, back := judgeWaking(t, seen.Sorted(), address, stopped, woke)
	if taken(lost) == 0 {
		t.Errorf("nobody took over any of the %d sites that the sleeper was crawling", len(lost))
	}
	t.Logf("%d sites were the sleeper's, %d of them were asked by others meanwhile, %d came back to it; twice %d, smallest gap %s",
		len(lost), taken(lost), back, len(d.Twice), r.MinGap)
}

// judgeWaking says which sites were the sleeper's, with true for those that
// others asked while it slept, and how many of those it asked again. Once awake,
// a site may change hands once, back to the sleeper; more is two peers that both believe it theirs.
func judgeWaking(t *testing.T, all []crawltest.Visit, sleeper netip.Addr, stopped, woke time.Time) (lost map[int]bool,
	back int) {
	last, changes := map[int]netip.Addr{}, map[int]int{}
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
			changes[v.Site]++
			if lost[v.Site] && v.From == sleeper {
				back++
			}
			if changes[v.Site] > 1 {
				t.Errorf("site %d is asked by %s after %s and back: two owners", v.Site, v.From, before)
			}
		}
	}
	return lost, back
}

func taken(lost map[int]bool) (n int) {
	for _, is := range lost {
		if is {
			n++
		}
	}
	return n
}
