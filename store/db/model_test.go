package db

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/format"
)

// model is what a Store must know after the calls that it acknowledged.
type model struct {
	slice    func(partition.Key) partition.Slice
	keys     map[partition.Key]store.Due
	records  map[partition.Key]string
	posts    map[partition.Key]map[string]string // by URI: "text < older text < …", or "deleted"
	points   map[partition.Key]string            // checkpoints
	outbox   map[partition.Slice]map[partition.Key]bool
	answered map[partition.Key]bool // lost with the process
	changes  []partition.Key
	meta     map[string]string
	fetches  int64
}

func newModel(s *Store) *model {
	return &model{slice: s.SliceOf, keys: map[partition.Key]store.Due{}, records: map[partition.Key]string{},
		posts: map[partition.Key]map[string]string{}, points: map[partition.Key]string{},
		outbox: map[partition.Slice]map[partition.Key]bool{}, answered: map[partition.Key]bool{},
		meta: map[string]string{}}
}

func (m *model) admit(a store.Admission, now time.Time) store.Answer {
	if _, ok := m.keys[a.Key]; ok {
		return store.Known
	}
	m.keys[a.Key] = store.Due{Key: a.Key, State: store.StatePending, At: now, Priority: a.Priority, Depth: a.Depth}
	return store.Admitted
}

func (m *model) commit(c store.Commit) error {
	d, ok := m.keys[c.Key]
	if !ok {
		return store.ErrNotExist
	}
	d.State, d.At, d.Attempts, d.Reason = c.Next.State, c.Next.At, c.Next.Attempts, c.Next.Reason
	if d.State == store.StatePending && d.At.IsZero() {
		d.At = c.Now
	}
	if r := c.Record; r != nil {
		d.ETag, d.Modified, d.Digest = r.ETag, r.Modified, r.Digest
		m.records[c.Key] = r.Text
		m.changes = append(m.changes, c.Key)
		m.fetches++
	}
	m.keys[c.Key] = d
	m.social(c)
	from := m.slice(c.Key)
	for _, a := range c.Links {
		if m.slice(a.Key) == from {
			m.admit(a, c.Now)
		} else if !m.answered[a.Key] {
			if m.outbox[from] == nil {
				m.outbox[from] = map[partition.Key]bool{}
			}
			m.outbox[from][a.Key] = true
		}
	}
	return nil
}

// social applies what c has in addition to its record. Commits come in order of time.
func (m *model) social(c store.Commit) {
	if c.Checkpoint != nil {
		m.points[c.Key] = string(c.Checkpoint)
	}
	for _, r := range c.Posts {
		if m.posts[c.Key] == nil {
			m.posts[c.Key] = map[string]string{}
		}
		had, ok := m.posts[c.Key][r.Post]
		now := r.Text
		switch {
		case r.Deleted:
			now = "deleted"
		case ok && had != "deleted":
			now = strings.Join(append([]string{r.Text},
				slices.DeleteFunc(strings.Split(had, " < "), func(old string) bool { return old == r.Text })...), " < ")
		}
		m.posts[c.Key][r.Post] = now
		m.changes = append(m.changes, c.Key)
	}
}

func (m *model) compareSocial(t tb, s *Store) {
	t.Helper()
	got, points := map[partition.Key]map[string]string{}, map[partition.Key]string{}
	for k := range m.keys {
		err := s.Accounts.Posts(0, k, "", func(r store.Record) (bool, error) {
			if got[k] == nil {
				got[k] = map[string]string{}
			}
			text := r.Text
			for _, e := range r.Edits {
				text += " < " + e.Text
			}
			if r.Deleted {
				text += "deleted"
			}
			got[k][r.Post] = text
			return true, nil
		})
		point, err2 := s.Accounts.Checkpoint(0, k)
		if err := errors.Join(err, err2); err != nil {
			t.Fatalf("%v", err)
		}
		if points[k] = string(point); points[k] == "" {
			delete(points, k)
		}
	}
	if d := cmp.Diff(m.posts, got); d != "" {
		t.Errorf("I3: posts:\n%s", d)
	}
	if d := cmp.Diff(m.points, points); d != "" {
		t.Errorf("I3: checkpoints:\n%s", d)
	}
}

func (m *model) drop(sl partition.Slice) {
	for k := range m.keys {
		if m.slice(k) == sl {
			delete(m.keys, k)
			for range m.posts[k] {
				m.changes = append(m.changes, k)
			}
			delete(m.posts, k)
			delete(m.points, k)
			if _, ok := m.records[k]; ok {
				delete(m.records, k)
				m.changes = append(m.changes, k)
			}
		}
	}
	delete(m.outbox, sl)
}

// compare reads everything through the exported methods and compares it.
func (m *model) compare(t tb, s *Store) {
	t.Helper()
	audit(t, s)
	if st := s.Stats(); st.Keys != int64(len(m.keys)) || st.Fetches != m.fetches {
		t.Errorf("I1: %d keys and %d fetches, want %d and %d", st.Keys, st.Fetches, len(m.keys), m.fetches)
	}
	byID := map[format.SiteID][]store.Due{}
	for k, want := range m.keys {
		got, err := s.Queue.DueOf(k)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("I1: %s: %v\n%s", k, err, cmp.Diff(want, got))
		}
		if !want.At.IsZero() {
			byID[s.engine.IDOf(k)] = append(byID[s.engine.IDOf(k)], want)
		}
	}
	for id, want := range byID {
		got := pendingOf(t, s, id)
		if !slices.IsSortedFunc(got, func(a, b store.Due) int {
			if x, y := format.BucketOf(a.At), format.BucketOf(b.At); x != y {
				return int(x) - int(y)
			}
			return a.Priority - b.Priority
		}) {
			t.Errorf("due rows of %s are not in order: %v", id.Site, got)
		}
		byKey := func(a, b store.Due) int { return cmpKey(a.Key, b.Key) }
		slices.SortFunc(got, byKey)
		slices.SortFunc(want, byKey)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("due rows of %s:\n%s", id.Site, d)
		}
	}
	records := map[partition.Key]string{}
	if err := s.Archive.Records("", func(r store.Record) (bool, error) {
		records[r.Key] = r.Text
		return true,
			nil
	}); err != nil {
		t.Fatalf("%v", err)
	}
	if d := cmp.Diff(m.records, records); d != "" {
		t.Errorf("I3: records:\n%s", d)
	}
	m.compareLogs(t, s)
	m.compareSocial(t, s)
}

func (m *model) compareLogs(t tb, s *Store) {
	t.Helper()
	want, got := map[string]bool{}, map[string]bool{}
	for sl, ks := range m.outbox {
		for k := range ks {
			want[fmt.Sprint(sl, " to ", m.slice(k), " ", k)] = true
		}
	}
	rows, _, err := s.Queue.Outbox(0, 1000, nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	for _, r := range rows {
		got[fmt.Sprint(r.Slice, " to ", r.To, " ", r.Key)] = true
	}
	if d := cmp.Diff(want, got); d != "" || len(rows) != len(got) {
		t.Errorf("I3: outbox of %d rows:\n%s", len(rows), d)
	}
	changes, err := s.Changes(0, 10000)
	if err != nil {
		t.Fatalf("%v", err)
	}
	var ks []partition.Key
	for i, c := range changes {
		ks = append(ks, c.Key)
		if i > 0 && c.Seq <= changes[i-1].Seq {
			t.Errorf("change log is not in order")
		}
	}
	slices.Sort(ks)
	if w := slices.Sorted(slices.Values(m.changes)); !slices.Equal(ks, w) {
		t.Errorf("I3: change log %v, want %v", ks, w)
	}
	for name, v := range m.meta {
		if got, err := s.Meta(name); err != nil || string(got) != v {
			t.Errorf("value %s: %q %v, want %q", name, got, err, v)
		}
	}
}

func cmpKey(a, b partition.Key) int {
	if a < b {
		return -1
	}
	return 1
}

func pendingOf(t tb, s *Store, id format.SiteID) (all []store.Due) {
	t.Helper()
	for from := []byte(nil); ; {
		rows, next, err := s.Queue.PendingOf(id.Slice, id.Site, from, 2)
		if err != nil {
			t.Fatalf("%v", err)
		}
		all = append(all, rows...)
		if from = next; next == nil {
			return all
		}
	}
}

// machine is a Store under random calls and crashes, and its model.
type machine struct {
	fs *vfs.MemFS
	s  *Store
	m  *model
	n  int
}

func drawKey(t *rapid.T) partition.Key {
	return key(rapid.SampledFrom([]string{"a.example", "b.example", "www.b.example", "c.example"}).Draw(t, "host"),
		rapid.IntRange(0, 4).Draw(t, "path"))
}

func drawAdmissions(t *rapid.T) []store.Admission {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) store.Admission {
		return store.Admission{Key: drawKey(t), Priority: rapid.IntRange(0, 3).Draw(t, "priority"),
			Depth: rapid.IntRange(0, 9).Draw(t, "depth")}
	}), 0, 6).Draw(t, "admissions")
}

func (c *machine) now() time.Time {
	c.n++
	return epoch().Add(time.Duration(c.n) * 17 * time.Minute)
}

func (c *machine) admit(t *rapid.T) {
	items, now := drawAdmissions(t), c.now()
	got, err := c.s.Queue.Admit(items, now)
	if err != nil {
		t.Fatalf("%v", err)
	}
	for i, a := range items {
		if want := c.m.admit(a, now); got[i] != want {
			t.Fatalf("I1: admit %s answered %d, want %d", a.Key, got[i], want)
		}
	}
}

func (c *machine) commit(t *rapid.T) {
	now := c.now()
	cm := store.Commit{Key: drawKey(t), Now: now, Links: drawAdmissions(t)}
	cm.Links = slices.DeleteFunc(cm.Links, func(a store.Admission) bool { return a.Key == cm.Key })
	cm.Next = store.Next{State: store.State(rapid.IntRange(1, 4).Draw(t, "state")),
		Attempts: rapid.IntRange(0, 3).Draw(t, "attempts"), Reason: "because"}
	if rapid.Bool().Draw(t, "again") {
		cm.Next.At = now.Add(time.Duration(rapid.IntRange(-90, 90).Draw(t, "minutes")) * time.Minute)
	}
	if rapid.Bool().Draw(t, "record") {
		cm.Record = record(cm.Key, fmt.Sprint("text ", c.n), now)
	}
	if rapid.Bool().Draw(t, "posts") {
		n := rapid.IntRange(0, 1).Draw(t, "post")
		if r := postOf(cm.Key, n, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "text"), now); rapid.IntRange(0,
			3).Draw(t, "fate") > 0 {
			cm.Posts = []store.Record{r}
		} else {
			cm.Posts = []store.Record{tombstone(cm.Key, n, now)}
		}
		cm.Checkpoint = []byte(fmt.Sprint("to ", c.n))
	}
	err, want := c.s.Commit(cm), c.m.commit(cm)
	if !errors.Is(err, want) {
		t.Fatalf("commit: %v, want %v", err, want)
	}
}

func (c *machine) sent(t *rapid.T) {
	rows, _, err := c.s.Queue.Outbox(0, 100, nil)
	if err != nil || len(rows) == 0 {
		t.Skip(err)
	}
	rows = rows[:rapid.IntRange(1, len(rows)).Draw(t, "rows")]
	if err := c.s.Queue.Sent(append(rows, rows[0])); err != nil {
		t.Fatalf("%v", err)
	}
	for _, r := range rows {
		delete(c.m.outbox[r.Slice], r.Key)
		c.m.answered[r.Key] = true
	}
}

// crash loses what was not synced, or half of it.
func (c *machine) crash(t *rapid.T) {
	cfg := vfs.CrashCloneCfg{}
	if rapid.Bool().Draw(t, "half") {
		cfg = vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}
	}
	fs := c.fs.CrashClone(cfg)
	closeStore(t, c.s)
	c.fs, c.s = fs, reopen(t, fs)
	c.m.answered = map[partition.Key]bool{}
}

func TestModelThroughCrashes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &machine{fs: vfs.NewCrashableMem()}
		c.s = create(t, c.fs)
		c.m = newModel(c.s)
		defer func() { closeStore(t, c.s) }()
		t.Repeat(map[string]func(*rapid.T){
			"admit": c.admit, "admit more": c.admit, "commit": c.commit, "commit more": c.commit, "sent": c.sent,
			"crash": c.crash,
			"drop": func(t *rapid.T) {
				sl := c.s.SliceOf(drawKey(t))
				if err := c.s.Log.DropSlice(sl); err != nil {
					t.Fatalf("%v", err)
				}
				c.m.drop(sl)
			},
			"meta": func(t *rapid.T) {
				v := fmt.Sprint(c.n)
				if err := c.s.SetMeta("name", []byte(v)); err != nil {
					t.Fatalf("%v", err)
				}
				c.m.meta["name"] = v
			},
			"": func(t *rapid.T) { c.m.compare(t, c.s) },
		})
	})
}
