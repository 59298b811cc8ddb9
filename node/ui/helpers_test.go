package ui

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/partition"
)

func TestNumbersForPeople(t *testing.T) {
	for got, want := range map[string]string{
		count(0): "0", count(999): "999", count(int64(1000)): "1\u202f000",
		count(uint64(math.MaxUint64)): "18\u202f446\u202f744\u202f073\u202f709\u202f551\u202f615",
		count(-123456):                "-123\u202f456",
		size(0):                       "0 B", size(1023): "1023 B", size(1536): "1.5 KiB", size(1 << 40): "1.0 TiB",
		size(1 << 55): "32768.0 TiB",
		span(59):      "59 s", span(61): "1 min 1 s", span(3 * 3600): "3 h 0 min", span(90000): "1 d 1 h",
		span(-1):         "?",
		span(math.NaN()): "?", span(math.Inf(1)): "?",
		short("short"): "short", short("12D3KooWabcdefgh"): "…abcdefgh",
	} {
		if got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for want, at := range map[string]time.Time{"never": {}, "now": now.Add(time.Hour),
		"5 s ago": now.Add(-5 * time.Second), "2 h 1 min ago": now.Add(-121 * time.Minute)} {
		if got := ago(now, at); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	for _, c := range [][3]int{{0, 0, 0}, {1, 0, 0}, {-1, 5, 0}, {1, 3, 33}, {9, 3, 100},
		{math.MaxInt32, math.MaxInt32, 100}} {
		if got := share(c[0], c[1]); got != c[2] {
			t.Errorf("share(%d, %d) = %d", c[0], c[1], got)
		}
	}
}

func FuzzLinkIsHTTPOrNothing(f *testing.F) {
	f.Add("web:https://example.org/")
	f.Add("web:javascript:alert(1)")
	f.Add("web: https://example.org/")
	f.Add("mastodon:a@b")
	f.Add("feed:http://")
	f.Fuzz(func(t *testing.T, k string) {
		if got := link(partition.Key(k)); got != "" && !strings.HasPrefix(strings.ToLower(got), "http://") &&
			!strings.HasPrefix(strings.ToLower(got), "https://") {
			t.Fatalf("%q", got)
		}
	})
}
