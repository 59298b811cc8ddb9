package social_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/crawler/social/follow"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
)

// death ends a peer before one of the writes and syncs of its disk. The next peer has all blocks
// that were synced by then. Of the rest it has none, some or all. What is left of the process sends
// no more requests.
type death struct {
	mem  *vfs.MemFS
	rng  *rand.Rand
	came chan struct{}
	dead atomic.Bool

	mu   sync.Mutex
	left int // writes and syncs until the death; <= 0: there is none by itself
	rest *vfs.MemFS
}

func newDeath(mem *vfs.MemFS, rng *rand.Rand, after int) *death {
	return &death{mem: mem, rng: rng, left: after, came: make(chan struct{})}
}

// after sets the number of writes and syncs from now until the death.
func (d *death) after(writes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = writes
}

// disk returns the disk of the peer that d ends.
func (d *death) disk() vfs.FS {
	return errorfs.Wrap(d.mem, errorfs.InjectorFunc(func(o errorfs.Op) error {
		if o.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.left--; d.left == 0 {
				d.die()
			}
		}
		return nil
	}))
}

// die ends the peer. The caller holds mu.
func (d *death) die() {
	d.dead.Store(true) // first: if a request is still sent after this, its intent is on the disk
	d.rest = d.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 0, 50, 100}[d.rng.IntN(4)], RNG: d.rng})
	close(d.came)
}

// wait waits for the death. If there are not enough writes within the time, wait causes it. It
// returns the disk that is left.
func (d *death) wait(most time.Duration) *vfs.MemFS {
	select {
	case <-d.came:
	case <-time.After(most):
		d.mu.Lock()
		if d.rest == nil {
			d.left = 0
			d.die()
		}
		d.mu.Unlock()
	}
	return d.rest
}

// mortal sends nothing after the death of its peer.
type mortal struct {
	http.RoundTripper
	d *death
}

func (m mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	if m.d.dead.Load() {
		return nil, errors.New("dead")
	}
	return m.RoundTripper.RoundTrip(r)
}

// rows returns the rows of the store on a disk, as package store specifies them: by table, with
// their values, without the table and the slice.
func rows(t *testing.T, disk *vfs.MemFS) map[byte]map[string][]byte {
	t.Helper()
	db, err := pebble.Open(disk.PathJoin("data", "pebble"), &pebble.Options{FS: disk, ReadOnly: true, Logger: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	it, err := db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[byte]map[string][]byte{}
	for ok := it.First(); ok; ok = it.Next() {
		k := it.Key()
		if out[k[0]] == nil {
			out[k[0]] = map[string][]byte{}
		}
		name := k[1:]
		if k[0] >= 'A' && len(name) > 8 && k[0] != 'N' {
			name = name[8:]
		}
		out[k[0]][string(name)] = bytes.Clone(it.Value())
	}
	if err := errors.Join(it.Error(), it.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	return out
}

// quiet is a pebble.Logger that logs nothing.
type quiet struct{}

func (quiet) Infof(string, ...any)           {}
func (quiet) Errorf(string, ...any)          {}
func (quiet) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

// keyOfRow returns the Key in a row SITE 00 KEY [00 ...].
func keyOfRow(row string) partition.Key {
	_, rest, _ := strings.Cut(row, "\x00")
	k, _, _ := strings.Cut(rest, "\x00")
	return partition.Key(k)
}

// sound checks the rows of a disk after a death, alone and against the disk before: no row was
// lost, and no Key is queued twice. It returns now.
func sound(t *testing.T, before, now map[byte]map[string][]byte) map[byte]map[string][]byte {
	t.Helper()
	// keys, records, posts, edges, walks, checkpoints, gaps
	for _, table := range []byte("KRSFYZJ") {
		for row := range before[table] {
			if _, there := now[table][row]; !there {
				t.Errorf("table %c: %q is gone", table, row)
			}
		}
	}
	queued := map[string]bool{}
	for row, key := range now['D'] {
		if queued[string(key)] {
			t.Errorf("%s is queued twice", key)
		}
		queued[string(key)] = true
		site, _, _ := strings.Cut(row, "\x00")
		if _, known := now['K'][site+"\x00"+string(key)]; !known {
			t.Errorf("%s is queued and not known", key)
		}
	}
	for row := range now['S'] { // I3: posts are committed together with their checkpoint
		if k := keyOfRow(row); now['Z'][string(k.Site())+"\x00"+string(k)+"\x00"] == nil {
			t.Errorf("posts of %s, and no checkpoint", k)
		}
	}
	return now
}

// queues compares the rows that say when a Key is due with the rows that say what is known of it.
// It also compares lists that were not read to their end with their queue.
func (p *peer) queues(now map[byte]map[string][]byte) {
	p.t.Helper()
	due := map[partition.Key]bool{}
	for _, key := range now['D'] {
		due[partition.Key(key)] = true
	}
	for row := range now['K'] {
		k := keyOfRow(row)
		d, err := p.store.Queue.DueOf(k)
		if err != nil || d.At.IsZero() == due[k] || d.State == store.StatePending && d.At.IsZero() {
			p.t.Errorf("%s is queued: %t, due %+v, %v", k, due[k], d, err)
		}
		if kind := k.Kind(); kind != partition.KindFollowers && kind != partition.KindFollowing {
			continue
		}
		var walks []store.Walk
		if err := p.store.Accounts.Walks(0, k, func(w store.Walk) (bool, error) {
			walks = append(walks, w)
			return true,
				nil
		}); err != nil {
			p.t.Error(err)
		}
		for i, w := range walks {
			if w.Ended {
				continue
			}
			at, err := p.store.Accounts.Checkpoint(0, k)
			if i < len(walks)-1 || d.State != store.StatePending || err != nil ||
				!bytes.Contains(at, []byte(`"at":"`)) {
				p.t.Errorf("%s: walk %d of %d stopped at %d of %d; due %+v; checkpoint %s %v", k, i+1, len(walks),
					w.Seen, w.Claimed, d, at, err)
			}
		}
	}
}

// killed ends the peer so many times. At most one peer of four ends so early that it may still be
// opening its store. The others end after about writes writes and syncs of their disk. The last
// peer runs on.
func (p *peer) killed(times, writes int, rng *rand.Rand) (opening int) {
	p.t.Helper()
	var last map[byte]map[string][]byte
	released := 0
	for n := range times {
		rest := p.death.wait(8 * time.Hour)
		p.stop()
		_ = p.store.Close() // of the dead peer; its disk is not used again
		p.fs = rest
		last = sound(p.t, last, rows(p.t, rest))
		if rng.IntN(4) == 0 {
			time.Sleep(time.Duration(rng.IntN(600)) * time.Second)
		}
		opens := rng.IntN(4) == 0 && n < times-1 // the peer dies while it opens
		if p.death = newDeath(rest, rng, 0); opens {
			p.death.after(1 + rng.IntN(60))
		}
		p.open()
		if p.death.dead.Load() {
			opening++
		}
		if !opens && n < times-1 {
			p.death.after(1 + rng.IntN(2*writes))
		}
		p.queues(last)
		p.run()
		released += p.release()
		if p.t.Failed() {
			return opening
		}
	}
	p.t.Logf("%d keys were left alone in %d deaths, and released", released, times)
	return opening
}

// known returns all that a peer knows and that does not depend on when it asked.
func (p *peer) known() map[string]string {
	p.t.Helper()
	out := map[string]string{}
	for row := range rows(p.t,
		p.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))}))['K'] {
		k := keyOfRow(row)
		d, err := p.store.Queue.DueOf(k)
		if err != nil {
			p.t.Fatal(err)
		}
		why := reasonState(d.Reason)
		if strings.HasPrefix(why, "again after ") { // the rest depends on when it asked
			why = "again"
		}
		out["due "+string(k)] = fmt.Sprint(d.State, " ", why, " ", d.Attempts)
		switch r, err := p.store.Archive.Record(k); {
		case err == nil:
			out["record "+string(k)] = fmt.Sprint(r.Kind, r.ID, r.Title, r.Text, r.VerdictWord(), r.MovedTo, r.Flags,
				r.Counts)
		case !errors.Is(err, store.ErrNotExist):
			p.t.Fatal(err)
		}
		for uri, r := range p.written(k) {
			out["post "+string(k)+" "+uri] = fmt.Sprintf("%q %t %d edits, boost of %q by %q, answers %q", r.Text,
				r.Deleted, len(r.Edits), r.BoostOf, r.By, r.InReplyTo)
		}
		if kind := k.Kind(); kind == partition.KindFollowers || kind == partition.KindFollowing {
			if err := p.store.Accounts.Edges(0, k, "", func(e store.Edge) (bool, error) {
				out["edge "+string(k)+" "+string(e.To)] = fmt.Sprint(e.GoneAt != nil)
				return true, nil
			}); err != nil {
				p.t.Fatal(err)
			}
		}
		for _, g := range p.gaps(k) {
			if g.To.Before(g.From) || g.At.After(time.Now()) {
				p.t.Errorf("gap %+v", g)
			}
			out["gap "+string(k)+" "+g.What+" "+g.Reason] = ""
		}
	}
	return out
}

// same reports the differences.
func same(t *testing.T, got, want map[string]string) {
	t.Helper()
	faults := 0
	for _, what := range slices.Sorted(maps.Keys(want)) {
		if has, there := got[what]; !there || has != want[what] {
			if faults++; faults <= 40 {
				t.Errorf("%s: %q (%t), want %q", what, has, there, want[what])
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(got)) {
		if _, there := want[what]; !there {
			if faults++; faults <= 40 {
				t.Errorf("%s: %q, and nobody else has it", what, got[what])
			}
		}
	}
	if faults > 0 {
		t.Errorf("%d of %d differ", faults, len(want))
	}
}

// story lets the people of a world post, reply, edit, delete and follow for some days. One account
// is suspended, and the server is down for a while. A post is changed only when every peer must
// have read it.
func story(t *testing.T, w *mastodontest.World, people []string, days int) {
	rng := rand.New(rand.NewPCG(3, 4))
	type post struct {
		id  string
		at  time.Time
		old bool // edited or deleted
	}
	var posts []post
	must := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	end := time.Now().Add(time.Duration(days) * 24 * time.Hour)
	for time.Now().Before(end) {
		time.Sleep(time.Duration(rng.IntN(int(time.Hour / 2))))
		who := people[rng.IntN(len(people))]
		id, err := w.Post(who, fmt.Sprintf("%s says %d", who, rng.IntN(1000)), "lisboa")
		must(err)
		posts = append(posts, post{id: id, at: time.Now()})
		p := &posts[rng.IntN(len(posts))]
		switch age := time.Since(p.at); {
		case p.old || age < 80*time.Hour || age > 120*time.Hour:
		case rng.IntN(2) == 0:
			p.old = true
			must(w.Edit(p.id, "something else"))
		default:
			p.old = true
			must(w.Delete(p.id))
		}
		if rng.IntN(10) == 0 {
			// may fail: already followed, or the account itself
			_ = w.Follow(people[rng.IntN(len(people))], people[rng.IntN(len(people))])
		}
	}
}

// A peer is killed at 200 points of its disk's writes. It is killed while it finds a community and
// reads posts and lists, many times in the middle of a list. It is also killed while it looks for
// news, and while it opens its store. In the end it knows what a peer knows that was never killed.
// What was once on the disk stays. Every known Key is queued once. The server refuses nothing.
func TestKillsEqualAnOracle(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	const kills, citizens, days = 200, 150, 7
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 21, People: citizens, Remote: -1, Rate: -1, Quiet: true,
			Limits: mastodontest.MastodonLimits()})
		var members []string
		truth := w.Truth()
		for _, u := range w.Users() {
			if a := truth.Accounts[u]; country(a.Fields[0][1]) == "PT" && !wishes(a) && !a.NoIndex {
				members = append(members, u)
			}
		}
		stars := members[:4]
		for _, star := range stars { // lists that take several fetches
			for _, u := range w.Users() {
				_ = w.Follow(u, star) // may fail: some follow already
			}
		}
		o := social.Options{Lists: true, Calls: 3, Least: time.Hour, Most: 72 * time.Hour, Profile: 72 * time.Hour,
			Rules: follow.Rules{Follow: follow.Community, Countries: []string{"PT"}, Country: country}}
		oracle, p := newPeer(t, w, o), newPeer(t, w, o)
		oracle.from = netip.MustParseAddr("127.0.0.2")
		p.slow = 150 * time.Millisecond // so that some deaths interrupt a call
		rng := rand.New(rand.NewPCG(7, 8))
		p.death = newDeath(p.fs, rng, 100)
		seeds := accountKeys(t, []string{stars[0], members[len(members)-1]})
		for _, peer := range []*peer{oracle, p} {
			peer.start()
			peer.seed(seeds...)
		}
		told := make(chan struct{})
		go func() {
			defer close(told)
			story(t, w, members[:len(members)/2], days)
		}()
		begun := time.Now()
		opening := p.killed(kills, 50, rng)
		over := time.Since(begun)
		// an account that is quarantined for days misses what is written and deleted in them
		p.rest(days*24*time.Hour - over)
		<-told
		p.rest(10 * 24 * time.Hour) // each list is read once more
		if r := w.Report(); r.Refused != 0 {
			t.Errorf("%d of %d requests refused", r.Refused, r.Requests)
		}
		for _, b := range p.src.Budgets()[0].Buckets {
			if b.Open != 0 {
				t.Errorf("calls that nobody makes are on their way: %+v", b)
			}
		}
		want := oracle.known()
		same(t, p.known(), want)
		r := w.Report()
		t.Logf("%d deaths, %d of them while it was opened, within %s; %d facts; %d requests, %d of the oracle", kills,
			opening, over, len(want), r.ByAddr[p.from], r.ByAddr[oracle.from])
		p.end()
		oracle.end()
	})
}
