package crawler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store/db"
)

// many returns n pages on n sites of one domain.
func many(t *testing.T, n int) []partition.Key {
	var keys []partition.Key
	for i := range n {
		keys = append(keys, key(t, fmt.Sprintf("https://s%d.example.org/", i)))
	}
	return keys
}

// begin runs a Crawler in the background; the returned func ends it.
func begin(t *testing.T, s *db.Store, f *fakeSource, o Options) (*Crawler, func()) {
	t.Helper()
	o.Store, o.Sources = s, []Source{f}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	c.SetSlices(s.Charter().Slices())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	return c, func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// Four requests a second pass, at even gaps, and Stats names the limit. In the end all is fetched.
func TestMaxRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := memStore(t), newFake()
		defer s.Close()
		keys := many(t, 200)
		admit(t, s, keys...)
		c, end := begin(t, s, f, Options{Limits: Limits{MaxRate: 4}})
		defer end()
		time.Sleep(11 * time.Second) // each site first waits one second
		if got := c.Stats(); got.Requests < 38 || got.Requests > 41 ||
			!slices.Contains(got.Limits, "rate 4 requests/s") {
			t.Errorf("%d requests in 10 s at 4/s; limits %q", got.Requests, got.Limits)
		}
		var all []time.Time
		for i := range 200 {
			all = append(all, f.askedAt(keys[i].Site())...)
		}
		slices.SortFunc(all, time.Time.Compare)
		for i := 1; i < len(all); i++ {
			if gap := all[i].Sub(all[i-1]); gap < 249*time.Millisecond {
				t.Errorf("gap %v", gap)
			}
		}
		time.Sleep(2 * time.Minute)
		if got := c.Stats(); got.Fetched != 200 || len(got.Limits) != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// Received bytes stay near the limit, and Stats names it.
func TestMaxBandwidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := memStore(t), newFake()
		defer s.Close()
		admit(t, s, many(t, 300)...)
		c, end := begin(t, s, f, Options{Workers: 4, Limits: Limits{MaxBandwidth: 2000}}) // a page has 1000 bytes
		defer end()
		time.Sleep(61 * time.Second)
		if got := c.Stats(); got.Bytes < 110_000 || got.Bytes > 125_000 ||
			!slices.Contains(got.Limits, "bandwidth 2000 B/s") {
			t.Errorf("%d bytes in 60 s at 2000/s; limits %q", got.Bytes, got.Limits)
		}
	})
}

// Hours over midnight: nothing is asked outside them, and everything is asked within them.
func TestHoursHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fake time begins at midnight UTC
		s, f := memStore(t), newFake()
		defer s.Close()
		admit(t, s, many(t, 2)...)
		c, end := begin(t, s, f, Options{Limits: Limits{Hours: "00:10-00:01", Zone: time.UTC}})
		defer end()
		time.Sleep(90 * time.Second)
		if got := c.Stats(); got.Fetched != 2 || !slices.Contains(got.Limits, "hours 00:10-00:01") {
			t.Errorf("in the first minute: %+v", got)
		}
		late := key(t, "https://s0.example.org/late")
		admit(t, s, late)
		c.Wake(s.SliceOf(late), late.Site())
		time.Sleep(8 * time.Minute)
		if f.count(late) != 0 {
			t.Error("fetched outside the hours")
		}
		time.Sleep(2 * time.Minute)
		if got := c.Stats(); f.count(late) != 1 || len(got.Limits) != 0 {
			t.Errorf("at 00:11: %d fetches, %+v", f.count(late), got)
		}
	})
}

// If the disk is full, nothing is fetched, Stats says so, and no row is lost.
func TestMaxDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := memStore(t), newFake()
		defer s.Close()
		admit(t, s, many(t, 2)...)
		c, end := begin(t, s, f, Options{Limits: Limits{MaxDisk: 1}})
		defer end()
		time.Sleep(time.Minute)
		if got := c.Stats(); got.Requests != 0 || len(got.Limits) != 1 || !strings.HasPrefix(got.Limits[0], "disk ") {
			t.Errorf("%+v", got)
		}
		if s.Stats().Pending != 2 {
			t.Error("rows were dropped")
		}
	})
}

// Links into other peers' slices stay in the outbox. If it takes a tenth of the disk, fetching
// stops. It goes on when the rows are sent.
func TestOutboxHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := memStore(t), newFake()
		defer s.Close()
		keys := many(t, 20)
		for i, k := range keys {
			for n := range 50 {
				f.links[k] = append(f.links[k], key(t, fmt.Sprintf("https://site%d-%d.example/", i, n)))
			}
		}
		admit(t, s, keys...)
		const disk = 1 << 20 // so about 400 rows
		c, end := begin(t, s, f, Options{Workers: 1, Limits: Limits{MaxDisk: disk}})
		defer end()
		time.Sleep(time.Minute)
		fetched := func() (n int) {
			for _, k := range keys {
				n += f.count(k)
			}
			return n
		}
		got := c.Stats()
		if fetched() == 0 || fetched() == 20 || len(got.Limits) != 1 || !strings.HasPrefix(got.Limits[0], "outbox ") {
			t.Fatalf("%+v, outbox %d", got, s.Stats().Outbox)
		}
		for range 10 {
			rows, _, err := s.Queue.Outbox(0, 1000, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Queue.Sent(rows); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
		}
		if got := c.Stats(); fetched() != 20 || len(got.Limits) != 0 {
			t.Errorf("%d fetched, %+v", fetched(), got)
		}
	})
}

// All forms of hours are read, and Until is exact. New reports all faults at once.
func TestParseHours(t *testing.T) {
	at := func(text string) time.Time {
		v, err := time.ParseInLocation("15:04", text, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, tt := range []struct {
		hours, at string
		until     time.Duration
	}{
		{"", "12:00", 0}, {"00-24", "23:59", 0}, {"22-07", "22:00", 0}, {"22-07", "23:59", 0}, {"22-07", "00:00", 0},
		{"22-07", "06:59", 0},
		{"22-07", "07:00", 15 * time.Hour}, {"22-07", "21:59", time.Minute}, {"9-17:30", "17:29", 0},
		{"9-17:30", "17:30", 15*time.Hour + 30*time.Minute},
		{"09-17", "08:00", time.Hour}, {"22-24", "23:00", 0}, {"22-24", "00:00", 22 * time.Hour},
	} {
		h, err := ParseHours(tt.hours)
		if err != nil {
			t.Fatal(err)
		}
		if got := h.Until(at(tt.at)); got != tt.until {
			t.Errorf("%s at %s: %v, want %v", tt.hours, tt.at, got, tt.until)
		}
	}
	for _, bad := range []string{"22", "22-22", "25-07", "22-07-08", "a-b", "-1-5", "22:60-07", "24-07", "22:-07",
		"22:5-07", "24:01-5", " "} {
		if h, err := ParseHours(bad); err == nil {
			t.Errorf("%q is %+v", bad, h)
		}
	}
	if _, err := New(Options{Limits: Limits{Hours: "x", MaxRate: -1}, Workers: -1}); err == nil ||
		!strings.Contains(err.Error(), "hours") || !strings.Contains(err.Error(), "MaxRate") ||
		!strings.Contains(err.Error(), "no store") || !strings.Contains(err.Error(), "Workers") {
		t.Error(err)
	}
}

// When the wait ends, the hours have begun.
func FuzzParseHours(f *testing.F) {
	f.Add("22-07", int64(0))
	f.Add("22:30-07:15", int64(1e9))
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		h, err := ParseHours(text)
		if err != nil {
			return
		}
		now := time.Unix(unix%1e10, 0).UTC()
		wait := h.Until(now)
		if wait < 0 || wait > 24*time.Hour {
			t.Fatal(wait)
		}
		if wait > 0 && h.Until(now.Add(wait)) != 0 {
			t.Fatalf("%q at %v: still %v after %v", text, now, h.Until(now.Add(wait)), wait)
		}
	})
}
