package nodetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// Chaos says what may go wrong during a crawl.
type Chaos struct {
	For     time.Duration // how long faults last; then all are repaired
	Crashes bool          // a peer crashes and comes back within Away
	Disks   bool          // like Crashes, in the middle of a write to the disk
	Pauses  bool          // see Pause, up to Away
	Cuts    bool          // into two sides, up to Away
	Lags    bool          // one peer's messages take up to 3 s
	Joins   int           // largest number of new peers
	Away    time.Duration // default 20 s
	// Shares of the calls between peers.
	Lost, Failed, Twice float64
}

// due is an action that is planned for a time.
type due struct {
	at time.Time
	do func()
}

// rage is one period of faults. Only its driver uses it.
type rage struct {
	s        *Sim
	c        Chaos
	begun    time.Time
	later    []due // the ends of faults
	troubled map[*SimPeer]bool
	cut      bool
}

// Rage causes the faults in c, drawn from Rand, and repairs everything at the end. It logs what
// it does.
func (s *Sim) Rage(c Chaos) {
	s.t.Helper()
	if c.Away == 0 {
		c.Away = 20 * time.Second
	}
	r := &rage{s: s, c: c, begun: time.Now(), troubled: map[*SimPeer]bool{}}
	var kinds []func()
	for _, k := range []struct {
		on bool
		do func()
	}{{c.Crashes, r.crash}, {c.Disks, r.disk}, {c.Pauses, r.pause}, {c.Cuts, r.cutOff}, {c.Lags, r.lag},
		{c.Joins > 0, r.join}} {
		if k.on {
			kinds = append(kinds, k.do)
		}
	}
	s.Calls.SetRates(c.Lost, c.Failed, c.Twice)
	for next := r.next(); ; {
		slices.SortFunc(r.later, func(a, b due) int { return a.at.Compare(b.at) })
		switch {
		case len(r.later) > 0 && r.later[0].at.Before(next):
			d := r.later[0]
			r.later = r.later[1:]
			time.Sleep(time.Until(d.at))
			d.do()
		case next.Sub(r.begun) > c.For:
			s.Mend()
			return
		default:
			time.Sleep(time.Until(next))
			if len(kinds) > 0 {
				kinds[s.Rand.IntN(len(kinds))]()
			}
			next = r.next()
		}
	}
}

// next returns the time of the next fault.
func (r *rage) next() time.Time {
	return time.Now().Add(between(r.s.Rand, 200*time.Millisecond, 5*time.Second))
}

func (r *rage) log(format string, args ...any) {
	r.s.t.Logf("%7.2fs %s", time.Since(r.s.begun).Seconds(), fmt.Sprintf(format, args...))
}

// some returns a peer that is up, has no fault and is not the last one.
func (r *rage) some() *SimPeer {
	up := slices.DeleteFunc(r.s.alive(), func(p *SimPeer) bool { return r.troubled[p] })
	if len(up) < 2 {
		return nil
	}
	return up[r.s.Rand.IntN(len(up))]
}

// during marks p as faulty for a while, and then calls end.
func (r *rage) during(p *SimPeer, end func()) time.Duration {
	d := between(r.s.Rand, 300*time.Millisecond, r.c.Away)
	r.troubled[p] = true
	r.later = append(r.later, due{time.Now().Add(d), func() { delete(r.troubled, p); end() }})
	return d
}

func (r *rage) crash() {
	if p := r.some(); p != nil {
		r.s.Crash(p)
		r.log("%s crashes, back after %s", p.Name, r.during(p, func() { r.s.Start(p) }))
	}
}

// disk crashes a peer at one of its next writes or syncs.
func (r *rage) disk() {
	p := r.some()
	if p == nil {
		return
	}
	var ops atomic.Int64
	at := 1 + r.s.Rand.Int64N(30)
	p.SetDisk(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && ops.Add(1) == at {
			r.s.Crash(p)
		}
		return nil
	})
	d := r.during(p, func() {
		p.SetDisk(nil)
		if !p.alive() {
			r.s.Start(p)
		}
	})
	r.log("%s crashes at its write %d, back after %s", p.Name, at, d)
}

func (r *rage) pause() {
	if p := r.some(); p != nil {
		r.s.Pause(p, r.c.Away/2)
		r.log("%s stands still for %s", p.Name, r.during(p, func() { r.s.Resume(p) }))
	}
}

func (r *rage) lag() {
	if p := r.some(); p != nil {
		lag := between(r.s.Rand, 100*time.Millisecond, 3*time.Second)
		r.s.Lag(p, lag)
		r.log("%s is slow by %s for %s", p.Name, lag, r.during(p, func() { r.s.Lag(p, 0) }))
	}
}

func (r *rage) cutOff() {
	if r.cut {
		return
	}
	side, names := map[*SimPeer]int{}, []string{}
	for _, p := range r.s.Peers {
		if r.s.Rand.IntN(2) == 0 {
			side[p] = 1
			names = append(names, p.Name)
		}
	}
	r.cut = true
	r.s.Cut(side)
	d := between(r.s.Rand, time.Second, r.c.Away)
	r.later = append(r.later, due{time.Now().Add(d), func() { r.cut = false; r.s.Heal() }})
	r.log("%v are cut off for %s", names, d)
}

func (r *rage) join() {
	if r.c.Joins > 0 {
		r.c.Joins--
		r.log("%s joins", r.s.Add().Name)
	}
}

// Nurse restarts every peer that goes down, after away. It does so for the duration long.
func (s *Sim) Nurse(long, away time.Duration) {
	s.t.Helper()
	down := map[*SimPeer]time.Time{}
	for end := time.Now().Add(long); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		for _, p := range s.Peers {
			switch since, known := down[p]; {
			case p.alive():
				delete(down, p)
			case !known:
				down[p] = time.Now()
			case time.Since(since) >= away:
				s.Start(p)
			}
		}
	}
}

// Mend ends every fault and starts every peer that is down.
func (s *Sim) Mend() {
	s.t.Helper()
	s.Calls.SetRates(0, 0, 0)
	s.Calls.SetJudge(nil)
	s.Heal()
	for _, p := range s.Peers {
		p.SetDisk(nil)
		s.Resume(p)
		if !p.alive() {
			s.Start(p)
		}
	}
}

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)+1))
}

// Damage changes a byte in a table of the store of a peer that is down. fraction says where in
// the table. Damage then records the damage, as the peer itself does when it reads that table.
// It returns an error with the recorded text.
func (s *Sim) Damage(p *SimPeer, fraction float64) error {
	s.t.Helper()
	if old := p.life.Load(); old != nil {
		<-old.gone
	}
	dir := p.Name + "/store"
	// so that the content of its log gets into a table
	st, err := db.Open(dir, store.Options{FS: p.disk})
	if err != nil {
		s.t.Fatalf("%s: %v", p.Name, err)
	}
	if err := st.Close(); err != nil {
		s.t.Fatalf("%s: %v", p.Name, err)
	}
	names, err := p.disk.List(dir + "/pebble")
	if err != nil {
		s.t.Fatalf("%s: %v", p.Name, err)
	}
	var table string
	var size int64
	for _, name := range names {
		if info, err := p.disk.Stat(dir + "/pebble/" + name); err == nil && strings.HasSuffix(name, ".sst") &&
			info.Size() > size {
			table, size = dir+"/pebble/"+name, info.Size()
		}
	}
	f, err := p.disk.OpenReadWrite(table, vfs.WriteCategoryUnspecified)
	if err != nil {
		s.t.Fatalf("%s: %v", p.Name, err)
	}
	at := int64(float64(size) * fraction)
	b := make([]byte, 1)
	_, err = f.ReadAt(b, at)
	b[0] ^= 0x10
	_, err2 := f.WriteAt(b, at)
	if err := errors.Join(err, err2, f.Sync(), f.Close()); err != nil {
		s.t.Fatalf("%s: %v", p.Name, err)
	}
	if st, err = db.Open(dir, store.Options{FS: p.disk}); err != nil {
		return err
	}
	err = st.Scrub(context.Background(), 1<<40)
	if cerr := st.Close(); cerr != nil {
		s.t.Fatalf("%s: %v", p.Name, cerr)
	}
	return err
}

// OnDisk returns the text of every record in the store of a peer that is down, including those
// in copies of other peers' slices.
func (s *Sim) OnDisk(p *SimPeer) map[partition.Key]string {
	s.t.Helper()
	if old := p.life.Load(); old != nil {
		<-old.gone
	}
	st, err := db.Open(p.Name+"/store", store.Options{FS: p.disk})
	if err != nil {
		s.t.Fatalf("%s: %v", p.Name, err)
	}
	out := map[partition.Key]string{}
	err = st.Archive.Records("", func(r store.Record) (bool, error) { out[r.Key] = r.Text; return true, nil })
	if err = errors.Join(err, st.Close()); err != nil {
		s.t.Fatalf("%s: %v", p.Name, err)
	}
	return out
}
