package churn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest"
)

// fleet is one swarm, or the baseline, with its test web and what was done to it.
type fleet struct {
	o       Options
	naive   bool
	label   string
	dir     string
	world   *crawltest.World
	visits  *crawltest.Visits
	members []*member
	roster  map[string]string

	mu     sync.Mutex
	side   map[*member]bool // of a cut; nil when there is none
	kills  []kill
	cuts   int
	joins  int
	before []string // owners of the sampled Keys
	after  []string
	began  time.Time // when the seeds were given
	joined time.Time // when the first peer joined
	ended  time.Time
}

// kill is one kill as it happened.
type kill struct {
	at     time.Time
	victim *member
	cut    bool // the swarm was cut then
}

// newFleet makes a test web and members, none of which runs yet.
func newFleet(o Options, naive bool, dir string) (*fleet, error) {
	f := &fleet{o: o, naive: naive, label: "swarm", dir: dir, visits: &crawltest.Visits{}, roster: map[string]string{}}
	net4, source := "127.77", byte(80)
	if naive {
		f.label, net4, source = "baseline", "127.78", 81
	}
	w := crawltest.Options{Seed: o.Seed, Sites: o.Sites, Pages: o.Pages, Prefix: net4,
		Gap: max(0, o.Delay-o.Tolerance()), Seen: f.visits.Add}
	if o.Partition == "geo" {
		w.Places = places()
	}
	if err := w.Check(); err != nil {
		return nil, err
	}
	f.world = crawltest.NewWorld(w)
	if err := f.world.Start(); err != nil {
		return nil, err
	}
	for i := range o.Peers + max(o.Joins, 0) {
		name := fmt.Sprintf("%s%d", f.label, i+1)
		from := netip.AddrFrom4([4]byte{127, source, byte(i / 250), byte(i%250 + 1)})
		m := &member{fleet: f, from: from, spec: Spec{Naive: naive, Name: name, Dir: filepath.Join(dir, name),
			From:  from.String(),
			Allow: f.world.AllowNet().String(), Delay: o.Delay, Partition: o.Partition, Replicas: o.Replicas,
			Verbose: o.Verbose}}
		if o.Partition == "geo" {
			m.spec.Location = placeOfPeer(i)
		}
		if naive {
			addr, err := freeAddr(from)
			if err != nil {
				return nil, errors.Join(err, f.world.Close())
			}
			f.roster[name] = addr
			m.spec.Roster = f.roster
		}
		f.members = append(f.members, m)
	}
	return f, nil
}

// freeAddr returns a port of the address on which no process listens now. Only the member uses
// ports of its address, so the port is still free when the member starts.
func freeAddr(of netip.Addr) (string, error) {
	l, err := net.Listen("tcp", netip.AddrPortFrom(of, 0).String())
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// joinOf returns the files in which m finds the others. The founder has none when it starts.
func (f *fleet) joinOf(m *member) []string {
	if f.naive || m == f.members[0] && m.name() == "" {
		return nil
	}
	var files []string
	for _, other := range f.members {
		if other != m && other.name() != "" {
			files = append(files, filepath.Join(other.spec.Dir, "addrs"))
		}
	}
	return files
}

// cutOf returns the ids on the other side of m.
func (f *fleet) cutOf(m *member) []string {
	f.mu.Lock()
	side := f.side
	f.mu.Unlock()
	if side == nil {
		return nil
	}
	var ids []string
	for _, other := range f.members {
		if side[other] != side[m] && other.name() != "" {
			ids = append(ids, other.name())
		}
	}
	return ids
}

// open starts the first peers and waits until all see all and act in what they own.
func (f *fleet) open(ctx context.Context) error {
	for i, m := range f.members[:f.o.Peers] {
		if err := m.start(); err != nil {
			return err
		}
		if i == 0 && !f.naive { // the others fetch the charter from it
			if err := f.await(ctx, time.Minute, "the founder is up", m.up); err != nil {
				return err
			}
		}
	}
	return f.await(ctx, 2*time.Minute, "all peers see each other", func() bool { return f.settled(f.o.Peers) })
}

// settled reports whether that many peers are up, see each other and await no slice.
func (f *fleet) settled(peers int) bool {
	up := 0
	for _, m := range f.members {
		s, _, ok := m.present()
		if !ok {
			continue
		}
		if s.Peers != peers || s.Awaited > 0 || s.Slices == 0 && peers < 32 {
			return false
		}
		up++
	}
	return up == peers
}

// await polls cond until it holds. A peer that died by itself ends it.
func (f *fleet) await(ctx context.Context, limit time.Duration, what string, cond func() bool) error {
	deadline := time.Now().Add(limit)
	for !cond() {
		for _, m := range f.members {
			if err := m.failure(); err != nil {
				return fmt.Errorf("%s: %w", f.label, err)
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not in %v: %s", f.label, limit, what)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// seed gives the first peer the seeds.
func (f *fleet) seed() error {
	f.began = time.Now()
	_, err := f.members[0].order(order{Do: doSeed, Keys: f.world.Seeds()})
	return err
}

// do does one event.
func (f *fleet) do(e event) error {
	switch e.act {
	case actKill:
		for i := range f.members { // the next one that is up; a random moment may be in its start
			if m := f.members[(e.peer+i)%len(f.members)]; m.up() || f.o.Random && m.lives() {
				at := time.Now()
				m.kill()
				f.kills = append(f.kills, kill{at, m, f.side != nil})
				return nil
			}
		}
	case actRestart: // each member that is down and was started before
		return f.restart()
	case actJoin:
		f.joins++
		if f.joined.IsZero() {
			f.joined = time.Now()
		}
		return f.members[e.peer].start()
	case actCut, actHeal:
		return f.split(e.side)
	case actBefore:
		f.before = f.owners()
	case actAfter:
		f.after = f.owners()
	}
	return nil
}

// restart starts every member that is down and was started before.
func (f *fleet) restart() error {
	for _, m := range f.members {
		m.mu.Lock()
		down := m.life == nil && m.id != ""
		m.mu.Unlock()
		if down {
			if err := m.start(); err != nil {
				return err
			}
		}
	}
	return nil
}

// split cuts the members of side off from the others; a nil side heals. A member that is still
// starting reads its order when it is up. Otherwise it would stay cut off by the state at its
// start.
func (f *fleet) split(side []int) error {
	cut := map[*member]bool{}
	for _, i := range side {
		cut[f.members[i]] = true
	}
	if len(side) == 0 {
		cut = nil
	} else {
		f.cuts++
	}
	f.mu.Lock()
	f.side = cut
	f.mu.Unlock()
	for _, m := range f.members {
		if m.lives() {
			if _, err := m.order(order{Do: doCut, IDs: f.cutOf(m)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// sampleKeys is how many invented Keys are sampled at a join.
const sampleKeys = 1000

// owners returns the owners of the sampled Keys as the first responding peer believes, or nil
// when none responds.
func (f *fleet) owners() []string {
	var urls []string
	for i := range sampleKeys {
		urls = append(urls, fmt.Sprintf("http://sample-%d.test/", i))
	}
	for _, m := range f.members {
		if a, err := m.ask(order{Do: doOwners, Keys: urls}, 5*time.Second); err == nil {
			return a.Owners
		}
	}
	return nil
}

// quietFor is how long all must have been idle, without sending anything, to be done.
const quietFor = 3 * time.Second

// finish heals the cut, starts members that are down, and waits until nothing is left to do. It
// reports whether that happened before the limit.
func (f *fleet) finish(ctx context.Context, limit time.Duration) (idle bool, err error) {
	if err := errors.Join(f.split(nil), f.restart()); err != nil {
		return false, err
	}
	since := time.Now()
	var sum status
	err = f.await(ctx, limit, "the end of the crawl", func() bool {
		now := f.sum()
		if !f.idle() || now != sum || now.Fetched == 0 { // 0: the seeds are still on their way
			since, sum = time.Now(), now
		}
		idle = time.Since(since) > quietFor
		return idle
	})
	if err != nil && ctx.Err() == nil && f.failure() == nil {
		err = nil // the limit was reached: what is missing is counted
	}
	f.ended = time.Now()
	if idle {
		f.ended = since
	}
	return idle, err
}

func (f *fleet) failure() error {
	for _, m := range f.members {
		if err := m.failure(); err != nil {
			return err
		}
	}
	return nil
}

// idle reports whether no member has anything to do, and every slice has an acting owner. While
// a new owner does not know its slice yet, no member reports what is pending there.
func (f *fleet) idle() bool {
	acting, total := 0, 0
	busy := slices.ContainsFunc(f.members, func(m *member) bool {
		if m.name() == "" {
			return false // it never joined
		}
		s, ago, up := m.present()
		acting, total = acting+s.Slices, max(total, s.Total)
		return !up || !s.Idle || ago > 3*statusEvery || s.Awaited > 0 || s.Peers != f.lived()
	})
	return !busy && (total == 0 || acting == total)
}

// unfinished says what each member has left to do.
func (f *fleet) unfinished() string {
	var out []string
	for _, m := range f.members {
		s, ago, up := m.present()
		if !up {
			out = append(out, m.spec.Name+" is down")
		} else if !s.Idle || s.Peers != f.lived() || s.Awaited > 0 || ago > 3*statusEvery {
			out = append(out, fmt.Sprintf("%s: peers %d, pending %d, outbox %d, fetching %d, awaited %d, last heard of %v ago",
				m.spec.Name, s.Peers, s.Pending, s.Outbox, s.Fetching, s.Awaited, ago.Round(time.Millisecond)))
		}
	}
	return strings.Join(out, "; ")
}

// lived returns how many members were ever started.
func (f *fleet) lived() int {
	n := 0
	for _, m := range f.members {
		if m.name() != "" {
			n++
		}
	}
	return n
}

// sum returns what all members have sent, received and fetched.
func (f *fleet) sum() status {
	var all status
	for _, m := range f.members {
		s, _, _ := m.present()
		all = all.plus(m.total())
		all.BytesOut = 0 // pings continue
		all.Fetched += s.Fetched
	}
	return all
}

// close ends every process and the test web.
func (f *fleet) close() error {
	var wg sync.WaitGroup
	for _, m := range f.members {
		wg.Go(m.stop)
	}
	wg.Wait()
	return f.world.Close()
}
