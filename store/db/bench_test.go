package db

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/store"
)

func diskStore(b *testing.B) *Store {
	b.Helper()
	o := testOptions(vfs.Default)
	o.CacheMiB = 32
	s, err := Create(b.TempDir()+"/s", o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { closeStore(b, s) })
	return s
}

// BenchmarkAdmit: one Key a call, from 2 and from 64 goroutines. The 64 share syncs.
func BenchmarkAdmit(b *testing.B) {
	for _, g := range []int{1, 32} {
		b.Run(fmt.Sprint(2*g, " callers"), func(b *testing.B) {
			s := diskStore(b)
			var n atomic.Int64
			b.SetParallelism(g)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := int(n.Add(1))
					if _, err := s.Queue.Admit([]store.Admission{{Key: key(fmt.Sprintf("h%d.example", i%100), i)}},
						epoch()); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "keys/s")
		})
	}
}

// BenchmarkCommit: a page of 6 KiB of text with 40 links, 30 of them into its slice. It is
// committed without its body, with a body of 30 KiB, and with a body that the slice has already.
func BenchmarkCommit(b *testing.B) {
	for _, kind := range []string{"record", "body", "duplicate"} {
		b.Run(kind, func(b *testing.B) { benchmarkCommit(b, kind) })
	}
}

func benchmarkCommit(b *testing.B, kind string) {
	s := diskStore(b)
	page := "<!doctype html>"
	for i := range 900 {
		page += fmt.Sprintf("<p class=\"c%d\">word%d and %x</p>", i%7, i*i%997, i*i)
	}
	var text string
	for i := range 900 {
		text += fmt.Sprint("word", i*i%997, " ")
	}
	var n atomic.Int64
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := int(n.Add(1))
			host := fmt.Sprintf("h%d.example", i%100)
			k := key(host, i)
			if _, err := s.Queue.Admit([]store.Admission{{Key: k}}, epoch()); err != nil {
				b.Error(err)
			}
			c := done(k, text, epoch())
			c.Record.Digest = "sha256:x"
			for l := range 40 {
				to := host
				if l >= 30 {
					to = fmt.Sprintf("far%d.example", l)
				}
				c.Links = append(c.Links, store.Admission{Key: key(to, i/4*100+l), Referrer: k})
			}
			switch kind {
			case "body":
				c = captured(c, fmt.Sprint(i, page))
			case "duplicate":
				c = captured(c, page)
			}
			if err := s.Commit(c); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pages/s")
	b.ReportMetric(float64(s.Stats().DiskBytes)/float64(b.N), "diskB/page")
}

// BenchmarkOpen: a store of 1,000,000 Keys on 10,000 sites.
func BenchmarkOpen(b *testing.B) {
	mem := vfs.NewMem()
	s := create(b, mem)
	for i := 0; i < 1_000_000; {
		items := make([]store.Admission, 10_000)
		for j := range items {
			items[j].Key = key(fmt.Sprintf("h%d.example", i%10_000), i)
			i++
		}
		if _, err := s.Queue.Admit(items, epoch()); err != nil {
			b.Fatal(err)
		}
	}
	closeStore(b, s)
	b.ResetTimer()
	for b.Loop() {
		s := reopen(b, mem)
		if s.Stats().Keys != 1_000_000 {
			b.Fatal(s.Stats())
		}
		closeStore(b, s)
	}
}

func BenchmarkPendingOf(b *testing.B) {
	s := newStore(b)
	for i := range 20_000 {
		if i%1000 == 0 {
			var items []store.Admission
			for j := range 1000 {
				items = append(items, store.Admission{Key: key("a.example", i+j)})
			}
			if _, err := s.Queue.Admit(items, epoch()); err != nil {
				b.Fatal(err)
			}
		}
	}
	id := s.engine.IDOf(key("a.example", 0))
	for b.Loop() {
		if rows, _, err := s.Queue.PendingOf(id.Slice, id.Site, nil, 100); err != nil || len(rows) != 100 {
			b.Fatal(len(rows), err)
		}
	}
}
