package quota

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A peer that waits when told to is never slowed, however much it sends. It gets its rate and no
// more.
func TestObedientPeerIsNeverSlowed(t *testing.T) {
	c := newCredits(Limits{Links: Rate{100, 1000}})
	now, sent, began := time.Unix(0, 0), 0, time.Unix(0, 0)
	for range 500 {
		r := c.judge("p", price{links: 50, requests: 1, bytes: 1000}, now)
		if r.news != "" || !r.ok && r.wait <= 0 {
			t.Fatalf("%+v", r)
		}
		if r.ok {
			sent += 50
		} else {
			now = now.Add(r.wait)
		}
	}
	if most := 1000 + 100*now.Sub(began).Seconds(); float64(sent) > most || float64(sent) < most-100 {
		t.Errorf("%d links in %s", sent, now.Sub(began))
	}
	if s := c.state("p", now.Add(time.Minute)); s != "" {
		t.Error(s)
	}
}

// A peer that does not wait is told to wait, then slowed, then cut off for a time, and the log says
// so. Meanwhile other peers notice nothing and lease requests are answered. Afterwards the peer
// starts again with full credit.
func TestFloodIsSlowedThenCutOff(t *testing.T) {
	c := newCredits(Limits{Requests: Rate{10, 20}})
	now := time.Unix(0, 0)
	var news []string
	refused := map[string]int{}
	for range 2000 {
		now = now.Add(time.Millisecond)
		r := c.judge("flood", price{requests: 1}, now)
		if r.news != "" {
			news = append(news, r.news)
		}
		if !r.ok {
			refused[r.reason]++
		}
	}
	if got := strings.Join(news, ", "); got != "slowed, cut off" {
		t.Fatalf("%s; %v", got, refused)
	}
	if s := c.state("flood", now); !strings.HasPrefix(s, "cut off for ") || !strings.HasSuffix(s, "requests") {
		t.Error(s)
	}
	if r := c.judge("flood", price{priority: true}, now); !r.ok {
		t.Errorf("its lease: %+v", r)
	}
	if r := c.judge("other", price{requests: 1}, now); !r.ok {
		t.Errorf("another peer: %+v", r)
	}
	now = now.Add(3 * time.Minute)
	if r := c.judge("flood", price{requests: 1}, now); !r.ok {
		t.Errorf("after the cut: %+v", r)
	}
	if s := c.state("flood", now); s != "" {
		t.Error(s)
	}
	for range 40 {
		news = append(news, c.fault("rubbish", now))
	}
	if s := c.state("rubbish", now); !strings.Contains(s, "malformed") {
		t.Error(s)
	}
}

// A flood of priority messages has its own limit.
func TestPriorityFlood(t *testing.T) {
	c := newCredits(Limits{})
	now, ok := time.Unix(0, 0), 0
	for range 10_000 {
		if c.judge("p", price{priority: true}, now).ok {
			ok++
		}
	}
	if ok != 2000 || !strings.HasPrefix(c.state("p", now), "cut off") {
		t.Errorf("%d served, %q", ok, c.state("p", now))
	}
}

// Property: in any period a peer gets at most its burst plus its rate, and memory is bounded.
func TestCreditIsNeverExceeded(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := newCredits(Limits{Links: Rate{100, 300}, MaxPeers: 8})
		now, got := time.Unix(0, 0), map[string]float64{}
		for range rapid.IntRange(1, 300).Draw(r, "n") {
			now = now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(r, "ms")) * time.Millisecond)
			p := fmt.Sprint(rapid.IntRange(0, 20).Draw(r, "peer"))
			links := float64(rapid.IntRange(0, 300).Draw(r, "links"))
			if ruling := c.judge(p, price{links: links}, now); ruling.ok {
				got[p] += links
			} else if ruling.wait <= 0 {
				r.Fatalf("refused for no time: %+v", ruling)
			}
			if most := 300 + 100*now.Sub(time.Unix(0, 0)).Seconds(); got[p] > most+1 {
				r.Fatalf("%s got %v, most is %v", p, got[p], most)
			}
		}
		if len(c.peers) > 8 {
			r.Fatalf("%d peers", len(c.peers))
		}
	})
}
