package db

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/engine"
)

// benchPage is a page of about 6 KiB with 40 links, 30 of them into its slice.
func benchPage(i int, text string) store.Commit {
	host := fmt.Sprintf("h%d.example", i%100)
	k := key(host, i)
	c := done(k, text, epoch())
	c.Record.Digest = "sha256:x"
	c.Record.FetchedAt = epoch().Add(time.Duration(i) * time.Second)
	c.Now = c.Record.FetchedAt
	c.Site = &store.Site{Site: k.Site(), NextAllowed: c.Now.Add(time.Second), Fetched: int64(i),
		Robots: map[string]store.Robots{"https://" + host: {Body: []byte("User-agent: *\nDisallow: /x\n"), Status: 200,
			Fetched: epoch()}}}
	for l := range 40 {
		to := host
		if l >= 30 {
			to = fmt.Sprintf("far%d.example", l)
		}
		c.Links = append(c.Links, store.Admission{Key: key(to, i/4*100+l), Referrer: k})
		c.Record.Links = append(c.Record.Links, store.Link{Key: key(to, i/4*100+l), Anchor: "some words"})
	}
	return c
}

func benchText() string {
	rng := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for range 900 {
		fmt.Fprint(&text, "word", rng.IntN(3000), " ")
	}
	return text.String()
}

// commits commits the pages from first up to, but not including, last, from 64 goroutines.
func commits(b *testing.B, s *Store, first, last int, text string) {
	n := atomic.Int64{}
	n.Store(int64(first - 1))
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := int(n.Add(1))
			if i >= last {
				continue
			}
			c := benchPage(i, text)
			if _, err := s.Queue.Admit([]store.Admission{{Key: c.Key}}, epoch()); err != nil {
				b.Error(err)
			}
			if err := s.Commit(c); err != nil {
				b.Error(err)
			}
		}
	})
}

// cpu returns the processor time of this process. On a shared machine, it says more than elapsed
// time.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchSlices(s *Store) (sls []partition.Slice) {
	for i := range 100 {
		sls = append(sls, s.SliceOf(key(fmt.Sprintf("h%d.example", i), 0)))
	}
	return sls
}

// BenchmarkCommitLogged: the work of BenchmarkCommit with a log and without, and a page of words
// and links that do not repeat.
func BenchmarkCommitLogged(b *testing.B) {
	for _, on := range []bool{false, true} {
		b.Run(fmt.Sprint("logged ", on), func(b *testing.B) {
			s, text := diskStore(b), benchText()
			if on {
				s.Log.SetLogged(true, benchSlices(s)...)
			}
			b.ResetTimer()
			began := cpu(b)
			commits(b, s, 0, b.N+1, text)
			b.ReportMetric(float64((cpu(b)-began).Microseconds())/float64(b.N), "cpuµs/page")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pages/s")
		})
	}
}

// BenchmarkApplyLog: a follower of the same pages. ReadLog at the owner is timed separately. A call
// has a log chunk of each of 100 slices, with about 20 pages in all.
func BenchmarkApplyLog(b *testing.B) {
	owner, f, text := diskStore(b), diskStore(b), benchText()
	sls := benchSlices(owner)
	owner.Log.SetLogged(true, sls...)
	var calls [][]store.LogChunk
	var read time.Duration
	b.StopTimer()
	heads := map[partition.Slice]uint64{}
	rows, bytes := 0, 0
	for i := 0; i < b.N; {
		for range 20 {
			c := benchPage(i, text)
			if _, err := owner.Queue.Admit([]store.Admission{{Key: c.Key}}, epoch()); err != nil {
				b.Fatal(err)
			}
			if err := owner.Commit(c); err != nil {
				b.Fatal(err)
			}
			i++
		}
		began := cpu(b)
		var ps []store.LogChunk
		for _, sl := range sls {
			p, err := owner.Log.ReadLog(sl, heads[sl], 1<<20)
			if err != nil {
				b.Fatal(err)
			}
			if heads[sl] = p.To; p.To > p.From {
				ps = append(ps, p)
			}
			for _, r := range p.Rows {
				rows, bytes = rows+1, bytes+len(r.Key)+len(r.Value)
			}
		}
		read += cpu(b) - began
		calls = append(calls, ps)
	}
	b.StartTimer()
	began := cpu(b)
	for _, ps := range calls {
		if err := f.Log.ApplyLog(epoch().AddDate(1, 0, 0), ps...); err != nil {
			b.Fatal(err)
		}
	}
	n := float64(20 * len(calls))
	b.ReportMetric(float64((cpu(b)-began).Microseconds())/n, "cpuµs/page")
	b.ReportMetric(n/b.Elapsed().Seconds(), "pages/s")
	b.ReportMetric(float64(read.Microseconds())/n, "readcpuµs/page")
	b.ReportMetric(float64(rows)/n, "rows/page")
	b.ReportMetric(float64(bytes)/n, "bytes/page")
}

func BenchmarkStatsOf(b *testing.B) {
	s := newStore(b)
	for i := range 1 << 17 {
		s.engine.Totals.Of(partition.Slice(i)).Add(engine.TotalChange{Records: 1})
	}
	for b.Loop() {
		if st := s.StatsOf(func(sl partition.Slice) bool { return sl&1 == 0 }); st.Records != 1<<16 {
			b.Fatal(st)
		}
	}
}
