package budget

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"
)

const second = int64(time.Second)

// limiter counts calls as one kind of server does, by true time in nanoseconds.
type limiter interface {
	// ask reports whether a call that arrives at t is within the limit, how many are left after it,
	// and when that is reset.
	ask(t int64) (ok bool, left, reset int64)
	// whole returns how many calls were possible from 0 to end.
	whole(end int64) float64
}

// windows has fixed windows of the server's clock, which is skew ahead. With byFirst, each window
// begins with the first call after the previous window.
type windows struct {
	limit, window, skew int64
	byFirst             bool
	start, n            int64
	begun               bool
}

func (w *windows) ask(t int64) (bool, int64, int64) {
	start := floor(t+w.skew, w.window)*w.window - w.skew
	if w.byFirst {
		if start = w.start; !w.begun || t >= w.start+w.window {
			start = t
		}
	}
	if !w.begun || start != w.start {
		w.begun, w.start, w.n = true, start, 0
	}
	w.n++
	return w.n <= w.limit, max(0, w.limit-w.n), w.start + w.window
}

func (w *windows) whole(end int64) float64 { return float64(end/w.window) * float64(w.limit) }

// slidingLog refuses calls above limit in any interval as long as the window.
type slidingLog struct {
	limit, window int64
	log           []int64
}

func (s *slidingLog) ask(t int64) (bool, int64, int64) {
	for len(s.log) > 0 && s.log[0] <= t-s.window {
		s.log = s.log[1:]
	}
	ok := int64(len(s.log)) < s.limit
	if ok {
		s.log = append(s.log, t)
	}
	return ok, s.limit - int64(len(s.log)), s.log[0] + s.window
}

func (s *slidingLog) whole(end int64) float64 { return float64(end/s.window) * float64(s.limit) }

// tokenBucket holds capacity tokens, refilled in a window.
type tokenBucket struct {
	capacity, window int64
	level            float64
	at               int64
}

func (b *tokenBucket) ask(t int64) (bool, int64, int64) {
	b.level = min(float64(b.capacity), b.level+float64(t-b.at)*float64(b.capacity)/float64(b.window))
	b.at = t
	ok := b.level >= 1
	if ok {
		b.level--
	}
	return ok, int64(b.level), t + int64((float64(b.capacity)-b.level)*float64(b.window)/float64(b.capacity))
}

func (b *tokenBucket) whole(end int64) float64 {
	return float64(b.capacity) * (1 + float64(end)/float64(b.window))
}

// forms are the forms of rate limit headers. server is the server's clock at the response.
var forms = map[string]func(h http.Header, limit, left, window, reset, server int64){
	"none": func(http.Header, int64, int64, int64, int64, int64) {},
	"iso": func(h http.Header, limit, left, _, reset, _ int64) {
		set(h, "X-RateLimit-", limit, left, time.Unix(0, reset).UTC().Format("2006-01-02T15:04:05.000000Z"))
	},
	"epoch": func(h http.Header, limit, left, _, reset, _ int64) {
		set(h, "x-rate-limit-", limit, left, fmt.Sprint((reset+second-1)/second))
	},
	"policy": func(h http.Header, limit, left, window, reset, _ int64) {
		set(h, "RateLimit-", limit, left, fmt.Sprint(reset/second))
		h.Set("RateLimit-Policy", fmt.Sprintf("%d;w=%d", limit, window/second))
	},
	"draft7": func(h http.Header, limit, left, window, reset, server int64) {
		h.Set("RateLimit", fmt.Sprintf("limit=%d, remaining=%d, reset=%d", limit, left, (reset-server+second-1)/second))
		h.Set("RateLimit-Policy", fmt.Sprintf("%d;w=%d", limit, window/second))
	},
	"draft8": func(h http.Header, limit, left, window, reset, server int64) {
		h.Set("RateLimit", fmt.Sprintf(`"default";r=%d;t=%d`, left, (reset-server+second-1)/second))
		h.Set("RateLimit-Policy", fmt.Sprintf(`"default";q=%d;w=%d`, limit, window/second))
	},
}

// set sets the three headers with a common prefix.
func set(h http.Header, prefix string, limit, left int64, reset string) {
	h.Set(prefix+"Limit", fmt.Sprint(limit))
	h.Set(prefix+"Remaining", fmt.Sprint(left))
	h.Set(prefix+"Reset", reset)
}

// server is a simulated server: limits by class, and headers of one of them.
type server struct {
	limits map[string][]limiter // by class; a call is refused when one of them refuses
	speaks limiter              // the limiter for the headers, nil = none
	limit  int64                // in its headers
	window int64
	form   string
	skew   int64 // of its clock
	dated  bool
	lie    func(h http.Header, refused bool)

	taken, refused int
}

// epoch is the true time of 0 in a simulation; it is not at the edge of a window.
var epoch = time.Date(2026, 5, 1, 12, 3, 17, 400_000_000, time.UTC)

// arrive handles a call at true time t since epoch.
func (s *server) arrive(class string, t int64) Answer {
	a := Answer{Status: 200, Header: http.Header{}}
	at := epoch.UnixNano() + t
	for _, l := range s.limits[class] {
		ok, left, reset := l.ask(at)
		if !ok {
			a.Status = 429
		}
		if l == s.speaks {
			forms[s.form](a.Header, s.limit, left, s.window, reset+s.skew, at+s.skew)
		}
	}
	if a.Status == 429 {
		s.refused++
	} else {
		s.taken++
	}
	if s.dated {
		a.Header.Set("Date", time.Unix(0, at+s.skew).UTC().Format(http.TimeFormat))
	}
	if s.lie != nil {
		s.lie(a.Header, a.Status == 429)
	}
	return a
}

// run is a client with a backlog: it has at most workers calls in flight, until end.
type run struct {
	t       testing.TB
	book    *Book
	server  *server
	class   func() string
	workers int
	rng     *rand.Rand
	fast    time.Duration // duration of a call, least and most
	slow    time.Duration
	end     time.Duration
	lossy   float64 // part of calls that get no response, or are not sent
	// crash is called at every step of a call. If it returns true, the Book is lost and reborn
	// replaces it.
	crash  func(step string) bool
	reborn func(now time.Time)
	sent   func(t Ticket, now time.Time) // before the request is sent
	answer func(now time.Time)           // after Settle

	now  int64
	open []inflight
}

// inflight is a call between its start and its response.
type inflight struct {
	t                Ticket
	arrives, answers int64 // true times since epoch
	a                Answer
	arrived, orphan  bool // orphan: its process died
}

// at returns the true time t nanoseconds after epoch.
func at(t int64) time.Time { return epoch.Add(time.Duration(t)) }

// loop runs the simulation until end.
func (r *run) loop() {
	for r.now < int64(r.end) {
		wake := r.reserve()
		for _, f := range r.open {
			if !f.arrived {
				wake = min(wake, f.arrives)
			} else {
				wake = min(wake, f.answers)
			}
		}
		if r.now = max(r.now, wake); r.now >= int64(r.end) {
			return
		}
		r.events()
	}
}

// reserve starts as many calls as possible and returns when to try again.
func (r *run) reserve() (wake int64) {
	mine := 0
	for _, f := range r.open {
		if !f.orphan {
			mine++
		}
	}
	for mine < r.workers {
		class := r.class()
		t, err := r.book.Reserve(at(r.now), class, Ask{})
		if err != nil {
			var w *WaitError
			if !asWait(err, &w) {
				r.t.Fatal(err)
			}
			if next, err := r.book.Next(at(r.now), class, Ask{}); err != nil || next != w.Wait ||
				!w.At.After(at(r.now)) || w.Bucket == "" {
				r.t.Fatalf("%v at %s, but Next %+v %v", w, at(r.now), next, err)
			}
			return w.At.Sub(epoch).Nanoseconds()
		}
		if r.sent != nil {
			r.sent(t, at(r.now))
		}
		if r.crash != nil && r.crash("reserved") {
			r.die()
			return r.now + 1
		}
		if r.rng.Float64() < r.lossy {
			if err := r.book.Settle(at(r.now), t, Answer{NotSent: true}); err != nil {
				r.t.Fatal(err)
			}
			continue
		}
		mine++
		up := r.latency()
		r.open = append(r.open, inflight{t: t, arrives: r.now + up, answers: r.now + up + r.latency()})
	}
	return int64(r.end)
}

// latency draws half of a call's duration.
func (r *run) latency() int64 {
	return (int64(r.fast) + r.rng.Int64N(int64(r.slow-r.fast)+1)) / 2
}

// events handles the calls that arrive or are answered by now.
func (r *run) events() {
	for i := 0; i < len(r.open); i++ {
		f := &r.open[i]
		if !f.arrived && f.arrives <= r.now {
			f.a, f.arrived = r.server.arrive(f.t.Class, f.arrives), true
		}
		if !f.arrived || f.answers > r.now {
			continue
		}
		done := *f
		r.open = append(r.open[:i], r.open[i+1:]...)
		i--
		if done.orphan {
			continue
		}
		if r.crash != nil && r.crash("answered") {
			r.die()
			return
		}
		if r.rng.Float64() < r.lossy {
			done.a = Answer{}
		}
		if err := r.book.Settle(at(r.now), done.t, done.a); err != nil {
			r.t.Fatal(err)
		}
		if r.answer != nil {
			r.answer(at(r.now))
		}
		if r.crash != nil && r.crash("settled") {
			r.die()
			return
		}
	}
}

// die ends the process; requests in flight may still arrive at the server.
func (r *run) die() {
	for i := range r.open {
		r.open[i].orphan = true
	}
	r.reborn(at(r.now))
}
