package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest"
	"github.com/echo-node/echo-node/node/api"
)

// process is one `echo-node run`.
type process struct {
	t    *testing.T
	name string
	api  string
	args []string
	cmd  *exec.Cmd
	log  bytes.Buffer
	done chan error
}

func startProcess(t *testing.T, dir, name string, args ...string) *process {
	t.Helper()
	addr, err := freeAddr()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, name: name, api: addr,
		args: append([]string{"run", "-v", "--data", filepath.Join(dir, name), "--api", addr,
			"--listen", "/ip4/127.0.0.1/udp/0/quic-v1"}, args...)}
	p.start()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			b := p.log.Bytes()
			t.Logf("%s said (the end of it):\n%s", p.name, b[max(0, len(b)-6000):])
		}
	})
	return p
}

func (p *process) start() {
	p.t.Helper()
	p.cmd = exec.Command(echoNode(p.t), p.args...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	done := make(chan error, 2)
	p.done = done
	go func(c *exec.Cmd) { err := c.Wait(); done <- err; done <- err }(p.cmd)
}

func (p *process) ended() bool { return len(p.done) > 0 }

// echo runs a client command against p and decodes its JSON.
func (p *process) echo(v any, args ...string) error {
	cmd := exec.Command(echoNode(p.t), append(args, "--api", p.api, "--json")...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %v: %w: %s", p.name, args, err, errs.String())
	}
	return json.Unmarshal(out.Bytes(), v)
}

func (p *process) client() *api.Client {
	c, err := api.NewClient(p.api, findToken(p.api))
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

func (p *process) wait(want int) {
	p.t.Helper()
	if err := waits(p.name+" settles", func() error {
		st, err := p.client().Status(context.Background())
		if err == nil && (st.Peers != want || st.SlicesAwaited > 0) {
			err = fmt.Errorf("%d peers, %d slices awaited", st.Peers, st.SlicesAwaited)
		}
		return err
	}); err != nil {
		p.t.Fatal(err)
	}
}

// owners returns the peer that owns each host of the test web's sites, as p sees it.
func (p *process) owners(w *crawltest.World) map[string]string {
	p.t.Helper()
	hosts := map[string]string{}
	for s := range w.Sites() {
		home, err := url.Parse(w.Home(s))
		if err != nil {
			p.t.Fatal(err)
		}
		k, err := parseKey(home.String())
		if err != nil {
			p.t.Fatal(err)
		}
		o, err := p.client().Owner(context.Background(), k)
		if err != nil {
			p.t.Fatal(err)
		}
		if len(o.Replicas) > 0 {
			hosts[home.Host] = o.Replicas[0]
		}
	}
	return hosts
}

// stoodInFor returns, from the peers' logs, the peers for whose slices others campaigned. These
// are the killed peer and peers that got no processor time for the length of a lease.
func stoodInFor(ps []*process) map[string]bool {
	owners := map[string]bool{}
	for _, p := range ps {
		for _, m := range regexp.MustCompile(`msg=campaign .*owner=(\S+)`).FindAllStringSubmatch(p.log.String(), -1) {
			owners[m[1]] = true
		}
	}
	return owners
}

// findsPagesOf waits until p's answer names n peers that fetched pages. It searches all pages,
// because a word of the test web is on only a few, and a peer may have none of them.
func (p *process) findsPagesOf(n int) error {
	return waits("peer "+p.name+" finds pages of all", func() error {
		a, err := p.client().Query(context.Background(), api.Query{Kind: "page", Limit: 1000, Unfold: true})
		if err != nil {
			return err
		}
		seen := map[string]int{}
		for _, h := range a.Hits {
			seen[h.Peer]++
		}
		if len(seen) < n {
			return fmt.Errorf("so far %v", seen)
		}
		return nil
	})
}

func (p *process) fetched() int64 {
	st, err := p.client().Status(context.Background())
	if err != nil {
		return -1
	}
	return st.Fetched
}

// waitFetched waits until p has fetched n pages.
func (p *process) waitFetched(n int64) {
	p.t.Helper()
	if err := waits(p.name+" fetches", func() error {
		if had := p.fetched(); had < n {
			return fmt.Errorf("fetched %d", had)
		}
		return nil
	}); err != nil {
		p.t.Fatal(err)
	}
}

// Three processes crawl a test web. One is killed with kill -9 in the middle and started again.
// Nothing is lost, and only pages in flight are fetched twice. Each peer answers for the whole
// swarm. All end by --until-idle when the crawl is done, and not before.
func TestThreeProcessesAndAKill(t *testing.T) {
	t.Parallel()
	world := crawltest.NewWorld(crawltest.Options{Seed: 3, Sites: 30, Pages: 10, Words: 40})
	if err := world.Start(); err != nil {
		t.Fatal(err)
	}
	defer world.Close()
	dir := t.TempDir()
	common := []string{"--until-idle", "20s", "--allow-net", "127.77.0.0/16", "--delay", "150ms"}
	ps := []*process{startProcess(t, dir, "a", common...)}
	ps[0].wait(1)
	for _, name := range []string{"b", "c"} {
		ps = append(ps, startProcess(t, dir, name, append(common, "--join", filepath.Join(dir, "a", "addrs"))...))
	}
	for _, p := range ps {
		p.wait(3)
	}
	time.Sleep(21 * time.Second) // longer than --until-idle: the first seed has not come
	for _, p := range ps {
		if p.ended() {
			t.Fatalf("%s ended before the first seed", p.name)
		}
	}
	if err := waits("each of three peers owns sites", func() error {
		owned := map[string]int{}
		for _, id := range ps[0].owners(world) {
			owned[id]++
		}
		if len(owned) < 3 {
			return fmt.Errorf("so far %v", owned)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var answers []api.SeedAnswer
	if err := ps[0].echo(&answers, append([]string{"seed"}, world.Seeds()...)...); err != nil {
		t.Fatal(err)
	}

	victim := ps[1]
	victim.waitFetched(10)
	st, err := victim.client().Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	owners := victim.owners(world)
	if err := victim.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-victim.done
	if st.Pending == 0 {
		t.Fatal("the victim had nothing left to do: the kill proves nothing")
	}
	time.Sleep(6 * time.Second) // others take its slices over in the meantime
	for _, p := range []*process{ps[0], ps[2]} {
		if p.ended() {
			t.Fatalf("%s ended while a member with work was away", p.name)
		}
	}
	victim.start()
	victim.wait(3)

	if err := ps[2].findsPagesOf(3); err != nil {
		t.Error(err)
	}
	for _, p := range ps {
		select {
		case err := <-p.done:
			if err != nil {
				t.Errorf("%s: %v", p.name, err)
			}
		case <-time.After(90 * time.Second):
			t.Fatalf("%s does not end: %+v", p.name, p.fetched())
		}
	}
	expected := world.Expected(world.Seeds())
	d, r := world.Compare(expected), world.Report()
	if len(d.Missing)+len(d.Extra) > 0 {
		t.Errorf("missing %v, extra %v", d.Missing, d.Extra)
	}
	// Pages in flight at the kill are fetched again: of the sites that the killed peer owned,
	// at most one page each. The same holds for a peer that stood still for the length of a
	// lease on a busy machine.
	if second := d.SecondOfASite(); len(second) > 0 {
		t.Errorf("a second page of a site was fetched twice: %v", second)
	}
	gone := stoodInFor(ps)
	if !gone[st.ID] || len(gone) > 1 {
		t.Logf("others stood in for %v; %s was killed", slices.Collect(maps.Keys(gone)), st.ID)
	}
	for _, twice := range d.Twice {
		u, err := url.Parse(twice)
		if err != nil {
			t.Fatal(err)
		}
		if owner := owners[u.Host]; owner != st.ID && !gone[owner] {
			t.Errorf("%s was fetched twice, and is no page of the peer that was killed but of %s", twice, owner)
		}
	}
	if r.RobotsViolations+r.Forbidden > 0 || r.MaxAtOnce > 1 {
		t.Errorf("robots violations %d, private addresses %d, at once %d", r.RobotsViolations, r.Forbidden, r.MaxAtOnce)
	}
	if r.MinGap < 145*time.Millisecond { // the timers of client and server differ by less than that
		t.Errorf("smallest gap %s on %s", r.MinGap, r.MinGapSite)
	}
	t.Logf("%d pages, fetched twice %d, in flight at the kill %d, smallest gap %s", len(expected), len(d.Twice),
		st.Fetching, r.MinGap)
}

// An interrupted export to a file continues where the file was complete.
func TestExportMarks(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out.jsonl")
	m, err := openExport(name, "kind=page")
	if err != nil {
		t.Fatal(err)
	}
	step := func(text string) {
		if _, err := m.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	step("one\n")
	if err := m.mark("p|one"); err != nil {
		t.Fatal(err)
	}
	step("tw") // cut off here
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if m, err = openExport(name, "kind=page"); err != nil {
		t.Fatal(err)
	}
	if _, err := openExport(name, "kind=post"); err == nil {
		t.Error("an export with other filters goes on with it")
	}
	if m.cursor != "p|one" {
		t.Fatalf("cursor %q", m.cursor)
	}
	step("two\n")
	if err := errors.Join(m.mark("p|two"), m.done(), m.Close()); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(name); err != nil || string(b) != "one\ntwo\n" {
		t.Fatalf("%q, %v", b, err)
	}
}
