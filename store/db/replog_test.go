package db

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// peer is a store that can crash.
type peer struct {
	fs *vfs.MemFS
	s  *Store
}

func newPeer(t tb) *peer {
	fs := vfs.NewCrashableMem()
	return &peer{fs, create(t, fs)}
}

// crash loses what was not synced, or half of it.
func (p *peer) crash(t *rapid.T) {
	cfg := vfs.CrashCloneCfg{}
	if rapid.Bool().Draw(t, "half") {
		cfg = vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}
	}
	fs := p.fs.CrashClone(cfg)
	closeStore(t, p.s)
	p.fs, p.s = fs, reopen(t, fs)
}

// replicas is an owner of some slices and two followers, under random calls.
type replicas struct {
	owner     *peer
	followers [2]*peer
	slices    []partition.Slice
	n         int
	links     map[partition.Key]map[int64][]partition.Key // of the fetch of a Key at a time
	sent      map[partition.Key]bool
	acked     []acked
}

// acked is what a follower has when its log reaches pos.
type acked struct {
	slice  partition.Slice
	pos    uint64
	key    partition.Key
	record bool
}

func newReplicas(t *rapid.T) *replicas {
	k := &replicas{owner: newPeer(t), followers: [2]*peer{newPeer(t), newPeer(t)},
		links: map[partition.Key]map[int64][]partition.Key{}, sent: map[partition.Key]bool{}}
	for _, host := range []string{"a.example", "b.example", "c.example"} {
		k.slices = append(k.slices, k.owner.s.SliceOf(key(host, 0)))
	}
	k.own()
	return k
}

func (k *replicas) own() { k.owner.s.Log.SetLogged(true, k.slices...) }

func (k *replicas) close(t tb) {
	for _, p := range append(k.followers[:], k.owner) {
		closeStore(t, p.s)
	}
}

// now sometimes repeats a time or goes back, as clocks do.
func (k *replicas) now(t *rapid.T) time.Time {
	k.n += rapid.SampledFrom([]int{1, 1, 1, 0, -2}).Draw(t, "clock")
	return epoch().Add(time.Duration(k.n) * 17 * time.Minute)
}

func (k *replicas) ack(key partition.Key, record bool) {
	sl := k.owner.s.SliceOf(key)
	k.acked = append(k.acked, acked{sl, k.owner.s.Log.LogHead(sl), key, record})
}

func (k *replicas) admit(t *rapid.T) {
	items := drawAdmissions(t)
	if _, err := k.owner.s.Queue.Admit(items, k.now(t)); err != nil {
		t.Fatal(err)
	}
	for _, a := range items {
		k.ack(a.Key, false)
	}
}

func (k *replicas) commit(t *rapid.T) {
	now := k.now(t)
	c := store.Commit{Key: drawKey(t), Now: now, Links: drawAdmissions(t),
		Next: store.Next{State: store.State(rapid.IntRange(1, 4).Draw(t, "state")), Reason: "because"}}
	if rapid.Bool().Draw(t, "record") {
		c.Record = record(c.Key, rapid.StringN(0, 3, 9).Draw(t, "text"), now)
	}
	drawCapture(t, &c)
	drawSocial(t, &c)
	if rapid.Bool().Draw(t, "site") {
		c.Site = drawSite(t, c.Key.Site(), now)
	}
	err := k.owner.s.Commit(c)
	if errors.Is(err, store.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	st := stateAt(t, k.owner.s, c.Key)
	if k.links[c.Key] == nil {
		k.links[c.Key] = map[int64][]partition.Key{}
	}
	var links []partition.Key
	for _, a := range c.Links {
		links = append(links, a.Key)
	}
	k.links[c.Key][st.Fetched.UnixMicro()] = links
	k.ack(c.Key, c.Record != nil)
}

func drawSite(t *rapid.T, site partition.Site, now time.Time) *store.Site {
	st := &store.Site{Site: site, NextAllowed: now.Add(time.Minute), Fetched: int64(rapid.IntRange(0, 3).Draw(t,
		"fetched")),
		BackOff: time.Duration(rapid.IntRange(0, 2).Draw(t, "backoff"))}
	for _, origin := range []string{"https://x.example", "https://y.example"} {
		if n := rapid.IntRange(0, 2).Draw(t, "robots"); n > 0 {
			if st.Robots == nil {
				st.Robots = map[string]store.Robots{}
			}
			st.Robots[origin] = store.Robots{Body: bytes.Repeat([]byte{'#'}, n), Status: 200, Fetched: now}
		}
	}
	return st
}

func (k *replicas) putSite(t *rapid.T) {
	key := drawKey(t)
	st := drawSite(t, key.Site(), k.now(t))
	st.Slice = k.owner.s.SliceOf(key)
	if err := k.owner.s.Queue.PutSite(*st); err != nil {
		t.Fatal(err)
	}
}

func (k *replicas) send(t *rapid.T) {
	rows, _, err := k.owner.s.Queue.Outbox(0, 100, nil)
	if err != nil || len(rows) == 0 {
		t.Skip(err)
	}
	rows = rows[:rapid.IntRange(1, len(rows)).Draw(t, "rows")]
	for _, r := range rows {
		k.sent[r.Key] = true
	}
	if err := k.owner.s.Queue.Sent(rows); err != nil {
		t.Fatal(err)
	}
}

// adopt merges rows that another peer had of a slice.
func (k *replicas) adopt(t *rapid.T) {
	other := create(t, vfs.NewMem())
	defer closeStore(t, other)
	key := drawKey(t)
	admit(t, other, key)
	now := k.now(t)
	c := done(key, "other", now, drawKey(t))
	drawCapture(t, &c)
	drawSocial(t, &c)
	commit(t, other, c)
	sl := other.SliceOf(key)
	if err := k.owner.s.Log.ImportRows(sl, sliceRows(t, other, sl, 1<<20)); err != nil {
		t.Fatal(err)
	}
	k.ack(key, true)
}

// replicate sends one log chunk, or a snapshot, to a follower.
func (k *replicas) replicate(t *rapid.T, f *peer, sl partition.Slice, maxBytes int) {
	head := f.s.Log.LogHead(sl)
	p, err := k.owner.s.Log.ReadLog(sl, head, maxBytes)
	if errors.Is(err, store.ErrTrimmed) {
		k.snapshot(t, f, sl)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.s.Log.ApplyLog(epoch().AddDate(1, 0, 0), p); err != nil {
		t.Fatal(err)
	}
	if got := f.s.Log.LogHead(sl); got != p.To {
		t.Fatalf("the head is %d after a log chunk to %d", got, p.To)
	}
	if p.To == p.From {
		return
	}
	if err := f.s.Log.ApplyLog(epoch().AddDate(1, 0, 0), p); !errors.Is(err, store.ErrGap) {
		t.Fatalf("a log chunk again: %v", err)
	}
	if p, err := k.owner.s.Log.ReadLog(sl, p.To, maxBytes); err == nil && p.To > p.From {
		p.From++
		if err := f.s.Log.ApplyLog(epoch().AddDate(1, 0, 0), p); !errors.Is(err, store.ErrGap) && !errors.Is(err,
			store.ErrRow) {
			t.Fatalf("a log chunk with a gap: %v", err)
		}
	}
}

func (k *replicas) snapshot(t *rapid.T, f *peer, sl partition.Slice) {
	if err := f.s.Log.DropSlice(sl); err != nil {
		t.Fatal(err)
	}
	p, err := k.owner.s.Log.ReadLog(sl, k.owner.s.Log.LogHead(sl), 0) // its head is durable
	if err != nil {
		t.Fatal(err)
	}
	if err := f.s.Log.ImportRows(sl, sliceRows(t, k.owner.s, sl, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := f.s.Log.ResetLog(sl, p.To); err != nil {
		t.Fatal(err)
	}
}

func (k *replicas) draw(t *rapid.T) (*peer, partition.Slice) {
	return k.followers[rapid.IntRange(0, 1).Draw(t, "follower")], rapid.SampledFrom(k.slices).Draw(t, "slice")
}

// check compares the followers with what their position says they have.
func (k *replicas) check(t *rapid.T) {
	for _, p := range append(k.followers[:], k.owner) {
		audit(t, p.s)
		checkSliceStats(t, p.s)
	}
	for _, f := range k.followers {
		for _, sl := range k.slices {
			if a, b := f.s.Log.LogHead(sl), k.owner.s.Log.LogHead(sl); a > b {
				t.Fatalf("a follower is at %d, the owner at %d: what was replicated was forgotten", a, b)
			}
		}
		for _, a := range k.acked {
			if f.s.Log.LogHead(a.slice) < a.pos {
				continue
			}
			if _, err := f.s.Queue.DueOf(a.key); err != nil {
				t.Errorf("acknowledged at %d, not at a follower at %d: %v", a.pos, f.s.Log.LogHead(a.slice), err)
			}
			if _, err := f.s.Archive.Record(a.key); a.record && err != nil {
				t.Errorf("committed at %d, not at a follower at %d: %v", a.pos, f.s.Log.LogHead(a.slice), err)
			}
		}
		k.checkLinks(t, f.s)
	}
}

// checkLinks checks I3 at a follower: the links of a page that is fetched there are there too.
func (k *replicas) checkLinks(t *rapid.T, s *Store) {
	for page, fetches := range k.links {
		if _, err := s.Queue.DueOf(page); err != nil {
			continue
		}
		for _, l := range fetches[stateAt(t, s, page).Fetched.UnixMicro()] {
			if l == page || k.sent[l] {
				continue
			}
			var err error
			if sl := s.SliceOf(page); s.SliceOf(l) == sl {
				_, err = s.Queue.DueOf(l)
			} else {
				_, err = s.engine.Get(format.QueuedKey(sl, l))
			}
			if err != nil {
				t.Errorf("I3: %s is fetched at a follower, its link %s is lost: %v", page, l, err)
			}
		}
	}
}

// catchUp replicates everything. Then owner and followers must be the same.
func (k *replicas) catchUp(t *rapid.T) {
	for _, f := range k.followers {
		for _, sl := range k.slices {
			for f.s.Log.LogHead(sl) < k.owner.s.Log.LogHead(sl) {
				k.replicate(t, f, sl, 500)
			}
			sameSlice(t, k.owner.s, f.s, sl)
		}
	}
	k.check(t)
}

func stateAt(t tb, s *Store, k partition.Key) format.KeyState {
	v, err := s.engine.Get(format.KeyRow(format.TabKey, s.engine.IDOf(k), k))
	if err != nil {
		t.Fatalf("%v", err)
	}
	st, err := format.DecodeKeyState(v)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return st
}

// sameSlice compares digests, and rows without their order of admission.
func sameSlice(t tb, a, b *Store, sl partition.Slice) {
	t.Helper()
	x, at, err := a.Log.DigestsAt(sl)
	y, err2 := b.Log.Digests(sl)
	if err := errors.Join(err, err2); err != nil {
		t.Fatalf("%v", err)
	}
	if x != y {
		t.Errorf("digests of %s at %d differ", sl, at)
	}
	var rows [2]map[string]string
	for i, s := range []*Store{a, b} {
		rows[i] = map[string]string{}
		for _, r := range sliceRows(t, s, sl, 1<<20) {
			v := r.Value
			if r.Key[0] == format.NameKey {
				st, err := format.DecodeKeyState(v)
				if err != nil {
					t.Fatalf("%v", err)
				}
				st.Seq = 0
				v = st.Encode()
			} else if r.Key[0] == format.NameLink {
				v = nil
			}
			rows[i][string(r.Key)] = string(v)
		}
	}
	if d := cmp.Diff(rows[0], rows[1]); d != "" {
		t.Errorf("rows of %s at %d differ:\n%s", sl, at, d)
	}
}

// checkSliceStats compares the totals of slices with those of the store.
func checkSliceStats(t tb, s *Store) {
	t.Helper()
	all, want := s.StatsOf(func(partition.Slice) bool { return true }), s.Stats()
	all.DiskBytes, all.Fetches = want.DiskBytes, want.Fetches
	if all != want {
		t.Errorf("slices sum up to %+v, the store says %+v", all, want)
	}
}

func TestI2I3FollowersThroughCrashes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := newReplicas(t)
		defer func() { k.close(t) }()
		ship := func(t *rapid.T) {
			f, sl := k.draw(t)
			k.replicate(t, f, sl, rapid.SampledFrom([]int{1, 300, 2000, 1 << 20}).Draw(t, "bytes"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"admit": k.admit, "commit": k.commit, "commit more": k.commit, "commit still more": k.commit,
			"send": k.send, "pace": k.putSite, "adopt": k.adopt, "ship": ship, "ship more": ship,
			"ship still more": ship,
			"trim": func(t *rapid.T) {
				p, sl := k.draw(t)
				if rapid.Bool().Draw(t, "owner") {
					p = k.owner
				}
				head := p.s.Log.LogHead(sl)
				upTo := rapid.Uint64Range(0, head).Draw(t, "up to")
				if err := p.s.Log.TrimLog(sl, upTo); err != nil {
					t.Fatal(err)
				}
				if got := p.s.Log.LogHead(sl); got != head {
					t.Fatalf("trimmed, the head is %d, not %d", got, head)
				}
			},
			"crash of the owner":  func(t *rapid.T) { k.owner.crash(t); k.own() },
			"crash of a follower": func(t *rapid.T) { f, _ := k.draw(t); f.crash(t) },
			"": func(t *rapid.T) {
				if k.check(t); rapid.IntRange(0, 9).Draw(t, "catch up") == 0 {
					k.catchUp(t)
				}
			},
		})
		k.catchUp(t)
		checkLogs(t, k.owner.s)
	})
}

// checkLogs compares the state of the logs in memory with the rows.
func checkLogs(t tb, s *Store) {
	t.Helper()
	for sl, l := range maps.Clone(s.engine.Logs.By) {
		var n int
		var size int64
		var last format.EntryHead
		p := format.SlicePrefix(format.TabSlice, sl)
		if err := s.engine.Scan(p, format.After(p), func(key, value []byte) (bool, error) {
			e, err := format.DecodeEntry(key, value)
			if n++; n > 1 && e.Base() != last.Pos {
				return false, fmt.Errorf("entry at %d begins after %d, the one before is at %d", e.Pos, e.Base(),
					last.Pos)
			}
			size += int64(e.Size)
			last = e.EntryHead
			return true, err
		}); err != nil {
			t.Errorf("log of %s: %v", sl, err)
		}
		entries, bytes := s.Log.LogLen(sl)
		if last != l.Last || entries != n || bytes != size || s.Log.LogHead(sl) != last.Pos {
			t.Errorf("log of %s: %d entries of %d bytes to %+v, memory says %d of %d to %+v", sl, n, size, last,
				entries, bytes, l.Last)
		}
	}
}
