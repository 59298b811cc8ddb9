package crawler

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/crawler/schedule"
	"github.com/echo-node/echo-node/partition"
)

// looked is the history of an item that was seen n times, a day apart, and changed each time or
// never.
func looked(n int, changed bool) *schedule.History {
	h := new(schedule.History)
	for i := range n {
		e := schedule.Event{At: time.Unix(1_700_000_000+86400*int64(i), 0)}
		if changed {
			e.Outcome = schedule.Changed
		}
		h.Add(e)
	}
	return h
}

// A Key that is visited a hundred times counts once. The sample stays limited and even. What is
// stored can be read again.
func TestLessonsSampleKeysAndNotVisits(t *testing.T) {
	l := newLessons()
	l.salt = 7
	const keys = 40_000
	for i := range keys {
		k := partition.Key(fmt.Sprintf("web:https://s%d.example.org/", i))
		h := looked(3, i%4 == 0)
		for range 1 + 20*(1-min(1, i%4)) { // Keys that change are seen more often
			l.see(k, h)
		}
	}
	l.see("web:https://new.example.org/", looked(1, false))
	if n := len(l.sample); n > maxSample || n < maxSample/3 {
		t.Fatalf("%d histories in the sample", n)
	}
	busy := 0
	for _, h := range l.sample {
		if _, changes := h.Totals(); changes > 0 {
			busy++
		}
	}
	if share := float64(busy) / float64(len(l.sample)); math.Abs(share-0.25) > 0.08 {
		t.Errorf("%.2f of the sample changes, 0.25 of the Keys do", share)
	}
	now := time.Unix(1_800_000_000, 0)
	if l.due(now, time.Hour) != nil || l.due(now.Add(time.Minute), time.Hour) != nil {
		t.Error("a fit before there is anything to learn")
	}
	sample := l.due(now.Add(time.Hour), time.Hour)
	if len(sample) != len(l.sample) || l.due(now.Add(9*time.Hour), time.Hour) != nil {
		t.Errorf("a fit to %d of %d histories, and another beside it", len(sample), len(l.sample))
	}
	l.model = l.model.Fit(sample)
	stored := l.encode()
	back, err := decodeLessons(stored)
	if err != nil {
		t.Fatal(err)
	}
	if back.model != l.model || back.salt != l.salt || back.limit != l.limit || len(back.sample) != len(l.sample) {
		t.Error("what was stored does not come back")
	}
	for at, h := range l.sample {
		if !bytes.Equal(back.sample[at].Append(nil), h.Append(nil)) {
			t.Fatal("a history does not come back")
		}
	}
	for _, bad := range [][]byte{nil, {2}, stored[:100], stored[:len(stored)-1],
		append([]byte{1}, make([]byte, 8*(2*schedule.Rates+1)+16)...)} {
		if _, err := decodeLessons(bad); err == nil {
			t.Errorf("%d bad bytes are taken", len(bad))
		}
	}
}

// A crawl learns how all its pages change, and knows it after a restart. Then it expects of a new
// page something else than the prior that knows nothing.
func TestCrawlLearnsHowPagesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := memStore(t), newFake()
		defer s.Close()
		var keys []partition.Key
		for i := range 60 {
			keys = append(keys, key(t, fmt.Sprintf("https://s%d.example%d.org/", i, i)))
		}
		f.reply = func(task Task, n int) (Result, error) {
			r := f.page(task)
			r.Record.Text = "edition " + string(rune('a'+n%26)) // each visit finds another edition
			r.Record.Digest = "sha256:" + r.Record.Text
			return r, nil
		}
		admit(t, s, keys...)
		crawl(t, s, f, Options{Revisit: 10 * time.Minute, Speed: 1000}, 5*time.Second)
		crawl(t, s, f, Options{Revisit: 10 * time.Minute, Speed: 1000}, time.Second)
		l, why, err := loadLessons(s)
		if why != nil || err != nil {
			t.Fatal(why, err)
		}
		if naive := schedule.NewModel(); l.model.Prior.Mean() < 5*naive.Prior.Mean() || len(l.sample) != len(keys) {
			t.Errorf("a page is thought to change %.2f times a day, %.2f before anything was seen; %d histories",
				l.model.Prior.Mean(), naive.Prior.Mean(), len(l.sample))
		}
		if err := s.SetMeta(metaLessons, []byte("?")); err != nil {
			t.Fatal(err)
		}
		if _, why, err = loadLessons(s); why == nil || err != nil {
			t.Errorf("what cannot be read: %v, %v", why, err)
		}
	})
}

// FuzzLessons: what the store has is read completely or not at all.
func FuzzLessons(f *testing.F) {
	l := newLessons()
	l.see("web:https://example.org/", looked(3, true))
	f.Add(l.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := decodeLessons(b)
		if err != nil {
			return
		}
		if again, err := decodeLessons(l.encode()); err != nil || len(again.sample) != len(l.sample) {
			t.Errorf("%x: %v", b, err)
		}
	})
}
