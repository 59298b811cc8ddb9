package social_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/crawler/social"
	"github.com/echo-node/echo-node/crawler/social/follow"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/racetest"
	"github.com/echo-node/echo-node/store"
)

// held returns the bytes of the heap in use, by owner: the world, the disk (which is in memory
// here), Pebble, and the rest.
func held() map[string]int64 {
	runtime.GC()
	runtime.GC() // the first call completes the counts of the cycle before
	var all []runtime.MemProfileRecord
	for n, ok := runtime.MemProfile(nil, false); !ok; {
		all = make([]runtime.MemProfileRecord, n+100)
		if n, ok = runtime.MemProfile(all, false); ok {
			all = all[:n]
		}
	}
	out := map[string]int64{}
	for _, r := range all {
		bytes, objects := float64(r.InUseBytes()), float64(r.InUseObjects())
		if objects == 0 {
			continue
		}
		// the profile is a sample
		bytes /= 1 - math.Exp(-bytes/objects/float64(runtime.MemProfileRate))
		whose := "own"
		frames := runtime.CallersFrames(r.Stack())
		for more := true; more && whose != "world"; {
			var f runtime.Frame
			f, more = frames.Next()
			switch {
			case strings.Contains(f.Function, "crawltest"):
				whose = "world"
			case strings.Contains(f.Function, "vfs.(*mem") || strings.Contains(f.Function, "vfs.(*Mem"):
				whose = "disk"
			case strings.Contains(f.Function, "/pebble/") && whose == "own":
				whose = "pebble"
			}
		}
		out[whose] += int64(bytes)
	}
	return out
}

// late returns a Key that has been due for more than by, "" if there is none.
func (p *peer) late(by time.Duration) string {
	p.t.Helper()
	now := time.Now()
	for _, sl := range p.store.Charter().Slices() {
		// in order of the hour
		due, _, err := p.store.Queue.PendingOf(sl, "mastodon:m.test", nil, 16)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, d := range due {
			if now.Sub(d.At) > by {
				return fmt.Sprintf("%s: due at %s, %s ago: %s", d.Key, d.At, now.Sub(d.At), d.Reason)
			}
		}
	}
	return ""
}

// planned checks that no Key waits longer than it may.
func (p *peer) planned() {
	p.t.Helper()
	now := time.Now()
	for _, sl := range p.store.Charter().Slices() {
		due, _, err := p.store.Queue.PendingOf(sl, "mastodon:m.test", nil, 1<<16)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, d := range due {
			most := 82 * time.Hour
			switch word := reasonState(d.Reason); {
			case d.Key.Kind() == partition.KindTimeline:
				most = time.Hour
			case d.Key.Kind() != partition.KindAccount:
				most = 30 * 24 * time.Hour
			case word == followed && strings.HasPrefix(d.Reason, "no post"):
				most = 40 * time.Hour
			case word == followed:
				most = 82 * time.Hour // an eighth later than 72 hours, rounded up
			case word == "suspended" || strings.HasPrefix(d.Reason, "moved to") ||
				strings.HasPrefix(d.Reason, "the profile says"):
				most = 90 * 24 * time.Hour
			}
			if d.At.Sub(now) > most {
				p.t.Errorf("%s waits for %s, at most %s: %s", d.Key, d.At.Sub(now), most, d.Reason)
			}
		}
	}
}

// The length of a month, and the events of the year.
const (
	monthLong = 365 * 24 * time.Hour / 12
	outage    = 3 * 24 * time.Hour // the server is down for this long in month 4
	// after the outage: Keys that were given up for a time are asked for again every six hours
	recovers = 8 * time.Hour
	lateMost = 10 * time.Minute
)

// year is the soak of TestAYearsSoak.
type year struct {
	t       *testing.T
	w       *mastodontest.World
	through *peer // is never restarted
	monthly *peer // is restarted each month; its token expires in month 6
	rng     *rand.Rand
	calm    time.Time // from then on no Key may be late
}

// month lets a month go by and checks at times that no Key is late.
func (y *year) month(n int) {
	y.t.Helper()
	users := y.w.Users()
	if n <= 10 { // newcomers are found through the accounts that they follow and that follow them
		acct := y.w.Join()
		_ = y.w.Follow(users[y.rng.IntN(5)], acct)
	}
	for range 6 {
		// may fail: already followed, or the account itself
		_ = y.w.Follow(users[y.rng.IntN(len(users))], users[y.rng.IntN(len(users))])
	}
	switch n {
	case 4:
		y.w.Lie(func(l *mastodontest.Lies) { l.Down = 502 })
		y.calm = time.Now().Add(outage + recovers)
	case 6:
		y.w.Expire("old")
		y.monthly.o.Tokens = y.token("new") // from its next start on
	}
	end, back, checked := time.Now().Add(monthLong), time.Now().Add(outage), time.Now()
	for time.Now().Before(end) {
		time.Sleep(time.Duration(y.rng.IntN(int(4 * time.Hour))))
		if n == 4 && time.Now().After(back) {
			y.w.Lie(func(l *mastodontest.Lies) { l.Down = 0 })
		}
		if time.Now().Before(y.calm) {
			continue
		}
		for _, p := range []*peer{y.through, y.monthly} {
			if late := p.late(lateMost); late != "" {
				y.t.Errorf("month %d, %s: %s", n, time.Now(), late)
			}
		}
		if time.Since(checked) > 24*time.Hour {
			checked = time.Now()
			y.through.planned()
			y.monthly.planned()
		}
	}
}

func (y *year) token(name string) []social.Token {
	c, err := service.NewCredential(name, name)
	if err != nil {
		y.t.Fatal(err)
	}
	return []social.Token{{Server: "m.test", Credential: c}}
}

// bounded compares what a peer keeps, on its disk and in memory, with the amount that there is to
// know.
func (y *year) bounded(n int, p *peer) {
	y.t.Helper()
	tables := rows(y.t, p.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: y.rng}))
	p.queues(tables)
	truth := y.w.Truth()
	people := len(truth.Accounts)
	keys := 3 * people // each with two lists
	for tab, most := range map[byte]int{'K': keys, 'D': keys, 'R': keys, 'Z': keys, 'S': len(truth.Posts),
		'F': 2 * people * people, 'V': store.MaxCaptures * keys,
		'J': 4 * keys, 'Y': 2 * people * 31 * n, 'L': 10 * (len(truth.Posts) + 31*keys), 'O': 0, 'X': 0, 1: 2*64 + 8} {
		if have := len(tables[tab]); have > most {
			y.t.Errorf("month %d: %d rows of table %c, at most %d", n, have, tab, most)
		}
	}
	sizes := p.src.Sizes()
	for what, most := range map[string]int{"looked up": people, "hours": 1, "servers": 1, "rate budgets": 1,
		"intents": 64 + 4, "limits": 8, "bytes of a book": 2048} {
		if sizes[what] > most {
			y.t.Errorf("month %d: %d %s, at most %d", n, sizes[what], what, most)
		}
	}
	if s := p.crawler.Stats(); s.Sites > 1 || s.ReadyKeys > keys || len(s.Stops) > 32 ||
		len(p.crawler.Failures()) > 200 {
		y.t.Errorf("month %d: %+v, %d failures", n, s, len(p.crawler.Failures()))
	}
	// as an index does after it has read them
	if err := p.store.TrimChanges(p.store.LastChange()); err != nil {
		y.t.Error(err)
	}
	var count []string
	for _, tab := range "KDRZSFVJYL\x01" {
		count = append(count, fmt.Sprintf("%q %d", tab, len(tables[byte(tab)])))
	}
	y.t.Logf("month %d: %d people, %d posts; rows %s; %v", n, people, len(truth.Posts), strings.Join(count, ", "),
		sizes)
}

// A peer follows a community for a year, with days and nights, newcomers, edits, deletions,
// suspensions and a server that is down for three days. Another peer does the same, but is
// restarted each month, and its token expires. No account is visited later than planned, or planned
// too far ahead. What a peer keeps, on the disk and in memory, is bounded by what there is to know.
// Nothing is missed.
func TestAYearsSoak(t *testing.T) {
	racetest.Skip(t)
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = 32 << 10
	defer func() { runtime.MemProfileRate = rate }()
	synctest.Test(t, func(t *testing.T) {
		w := world(t, mastodontest.Options{Seed: 31, People: 16, Remote: -1, Rate: 0.08,
			Limits: mastodontest.MastodonLimits(), Tokens: map[string]string{"old": "", "new": ""}})
		o := social.Options{Lists: true, Least: 6 * time.Hour, Most: 72 * time.Hour, Profile: 72 * time.Hour,
			Rules: follow.Rules{Follow: follow.Everybody}}
		y := &year{t: t, w: w, through: newPeer(t, w, o), monthly: newPeer(t, w, o), rng: rand.New(rand.NewPCG(1, 9)),
			calm: time.Now().Add(time.Hour)}
		y.monthly.from = netip.MustParseAddr("127.0.0.2")
		y.monthly.o.Tokens = y.token("old")
		for _, p := range []*peer{y.through, y.monthly} {
			p.start()
			p.seed(accountKeys(t, w.Users()[:3])...)
		}
		var early map[string]int64
		running := 0
		for n := 1; n <= 12; n++ {
			y.month(n)
			synctest.Wait()
			y.bounded(n, y.through)
			y.bounded(n, y.monthly)
			h := held()
			t.Logf("month %d: %d goroutines; of the heap %d kB own, %d kB Pebble's, %d kB the disk, %d kB the world", n,
				runtime.NumGoroutine(), h["own"]>>10, h["pebble"]>>10, h["disk"]>>10, h["world"]>>10)
			if n == 2 {
				early, running = h, runtime.NumGoroutine()
			}
			if n == 12 && (h["own"] > early["own"]*5/4+1<<20 || runtime.NumGoroutine() > running+2) {
				t.Errorf("%d bytes and %d goroutines, %d and %d in month 2", h["own"], runtime.NumGoroutine(),
					early["own"], running)
			}
			y.monthly.end()
			y.monthly.start()
		}
		time.Sleep(time.Hour)
		until := time.Now().Add(-4 * 24 * time.Hour)
		posts, tombstones := y.through.sameAsTruth(w.Truth(), until)
		y.monthly.sameAsTruth(w.Truth(), until)
		r := w.Report()
		if r.Refused != 0 || posts < 100 {
			t.Errorf("%d posts, %d refused", posts, r.Refused)
		}
		t.Logf("%d posts, %d tombstones; requests %v", posts, tombstones, r.ByAddr)
		y.through.end()
		y.monthly.end()
	})
}
