package budget

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/http"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// used returns a Book with every table and with calls in all states.
func used(t testing.TB) (*Book, time.Time) {
	t.Helper()
	b, err := New("mastodon:a.example", Options{Limits: map[string]int64{"usd/day": 5_000_000, "usd/users": 4_000_000}})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Services() {
		if err := b.Add(s, mustDefault(t, s), epoch); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	now := epoch
	for i := range 200 {
		l := b.creds[rng.IntN(len(b.creds))]
		class := l.table.Classes[rng.IntN(len(l.table.Classes))].Name
		ticket, err := b.Reserve(now, class, Ask{Items: 100})
		now = now.Add(time.Duration(rng.IntN(3000)) * time.Millisecond)
		if err != nil || i%10 == 9 {
			continue
		}
		h := http.Header{"Date": {now.UTC().Format(http.TimeFormat)}}
		set(h, "X-RateLimit-", 300, 250, now.UTC().Add(time.Minute).Format(time.RFC3339))
		a := Answer{Status: []int{200, 200, 429, 503}[rng.IntN(4)], Header: h, Items: 40}
		if i%7 == 0 {
			h.Set("RateLimit-Policy", "77;w=60")
		}
		if err := b.Settle(now, ticket, a); err != nil {
			t.Fatal(err)
		}
	}
	return b, now
}

// A snapshot has exactly one form. A Book restored from it has the same status once the calls in
// flight are settled or counted.
func TestSnapshotKeepsAll(t *testing.T) {
	b, now := used(t)
	now = now.Add(b.o.Flight) // no call is in flight
	c, err := New(b.site, b.o)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Services() {
		if err := c.Add(s, mustDefault(t, s), now); err != nil {
			t.Fatal(err)
		}
	}
	b.tick(now)
	for _, l := range b.ledgers() {
		text, err := b.Snapshot(l.name)
		if err != nil {
			t.Fatal(err)
		}
		im, err := decode(text)
		if err != nil {
			t.Fatalf("%s: %v", l.name, err)
		}
		if again := encode(im); !bytes.Equal(text, again) {
			t.Errorf("%s: %d bytes become %d", l.name, len(text), len(again))
		}
		if err := c.Restore(l.name, text, nil, now); err != nil {
			t.Errorf("%s: %v", l.name, err)
		}
		t.Logf("%s: %d bytes", l.name, len(text))
	}
	if got, want := c.Status(now), b.Status(now); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// Restore refuses damaged snapshots, and those of another credential or version. The Book does not
// change.
func TestRestoreRefuses(t *testing.T) {
	b, now := used(t)
	text, err := b.Snapshot("mastodon")
	if err != nil {
		t.Fatal(err)
	}
	other := append([]byte{}, text...)
	other[0] = 9
	for name, bad := range map[string][]byte{"another's": text, "another version": other, "cut": text[:len(text)-1],
		"longer": append(text[:len(text):len(text)], 0)} {
		before := b.Status(now)
		if err := b.Restore("x-app", bad, nil, now); !errors.Is(err, ErrSnapshot) {
			t.Errorf("%s: %v", name, err)
		}
		if after := b.Status(now); !reflect.DeepEqual(before, after) {
			t.Errorf("%s: the Book changed", name)
		}
	}
	if err := b.Restore("nobody", text, nil, now); !errors.Is(err, ErrCredential) {
		t.Error(err)
	}
	if err := b.Restore("mastodon", nil, [][]byte{{1, 2}}, now); !errors.Is(err, ErrSnapshot) {
		t.Error(err)
	}
}

// With any bytes as a snapshot, nothing panics. A Book that accepts them still works, and writes
// the accepted part back unchanged.
func FuzzRestore(f *testing.F) {
	b, now := used(f)
	for _, l := range b.ledgers() {
		text, err := b.Snapshot(l.name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		im, err := decode(text)
		if err != nil {
			if !errors.Is(err, ErrSnapshot) {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(encode(im), text) {
			t.Fatal("another form")
		}
		c, err := New(im.site, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"mastodon", "x-app", im.ledger.name} {
			tb := mustDefault(t, "mastodon")
			if name == "x-app" {
				tb = mustDefault(t, "x-app")
			}
			if name == AddressOf || c.Add(name, tb, now) != nil {
				continue
			}
		}
		if err := c.Restore(im.ledger.name, text, nil, now); err != nil && !errors.Is(err, ErrCredential) {
			t.Fatal(err)
		}
		at := now
		for range 20 {
			for _, class := range []string{"read", "paging", "users"} {
				ticket, err := c.Reserve(at, class, Ask{Items: 10})
				var w *WaitError
				if err == nil {
					h := http.Header{"Date": {at.UTC().Format(http.TimeFormat)}}
					set(h, "X-RateLimit-", 300, 5, "60")
					err = c.Settle(at.Add(time.Second), ticket, Answer{Status: 200, Header: h})
				} else if asWait(err, &w) || errors.Is(err, ErrClass) {
					err = nil
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			at = at.Add(time.Minute)
		}
		c.Status(at)
	})
}

// Each accepted intent has exactly one form.
func FuzzParseTicket(f *testing.F) {
	f.Add(Ticket{ID: 7, Credential: "one", Class: "read", At: epoch, Ask: Ask{Items: 3, Paid: 1}}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		ticket, err := ParseTicket(b)
		if err == nil && !bytes.Equal(ticket.Append(nil), b) {
			t.Fatalf("%+v", ticket)
		}
	})
}

// From any headers, the limits of accepted values hold.
func FuzzHeaders(f *testing.F) {
	f.Add("X-Ratelimit-Reset", "2026-11-21T04:23:02.000Z", "300")
	f.Add("Ratelimit", `"default";r=50;t=30`, `"default";q=100;w=10`)
	f.Add("Ratelimit-Limit", "100, 100;w=60", "3000;w=300")
	f.Add("Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT", "")
	f.Add("Date", "Fri, 31 Dec 1999 23:59:59 GMT", "1e9;w=99999999999")
	f.Add("Ratelimit", `"default";r=50;t=30`, `"other";q=300;w=166660`)
	f.Fuzz(func(t *testing.T, name, value, policy string) {
		h := http.Header{"X-Ratelimit-Remaining": {policy}, "Ratelimit-Policy": {policy}, "X-Ratelimit-Limit": {value}}
		h.Set(name, value)
		c := newClock(30 * time.Second)
		ps := readPolicies(h, epoch.UnixNano(), epoch.UnixNano()+second, &c)
		if len(ps) > MaxPolicies {
			t.Fatal(len(ps))
		}
		longest := 26 * time.Hour // MaxReset, plus the possible difference of the clocks
		for _, p := range ps {
			// a window that the server states is kept, however long
			longest = max(longest, time.Duration(p.window)+2*time.Hour)
			if p.limit < -1 || p.limit > MaxLimit || p.left < -1 || p.left > MaxLimit || p.window < -1 ||
				p.window > int64(MaxWindow) ||
				p.lo > p.hi || p.hi > epoch.Add(3*MaxWindow).UnixNano() {
				t.Fatalf("%+v", p)
			}
		}
		b := newBook(t, Options{}, mustDefault(t, "mastodon"), "one")
		ticket, err := b.Reserve(epoch, "paging", Ask{})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Settle(epoch.Add(time.Second), ticket, Answer{Status: 429, Header: h}); err != nil {
			t.Fatal(err)
		}
		if w, err := b.Next(epoch.Add(time.Second), "paging", Ask{}); err != nil || w.At.After(epoch.Add(longest)) {
			t.Fatalf("%+v %v", w, err)
		}
	})
}

// After our clock is set back, no allowance and no used amount is lost.
func TestClockSetBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newBook(t, Options{},
			table(map[string][]string{"read": {"b"}},
				Spec{Name: "b", Kind: rapid.SampledFrom([]Kind{Sliding, Tokens}).Draw(rt, "kind"), Limit: 3,
					Window: Span(time.Minute)}), "one")
		back := rapid.Int64Range(6, 1e6).Draw(rt, "back")
		now := epoch
		for range 3 {
			ticket, err := b.Reserve(now, "read", Ask{})
			if err != nil {
				rt.Fatal(err)
			}
			if err := b.Settle(now, ticket, Answer{Status: 200}); err != nil {
				rt.Fatal(err)
			}
		}
		before, err := b.Next(now, "read", Ask{})
		if err != nil {
			rt.Fatal(err)
		}
		now = now.Add(-time.Duration(back) * time.Second)
		after, err := b.Next(now, "read", Ask{})
		if err != nil {
			rt.Fatal(err)
		}
		if w := after.At.Sub(now); w != before.At.Sub(epoch) {
			rt.Fatalf("waits %s, before %s", w, before.At.Sub(epoch))
		}
	})
}
