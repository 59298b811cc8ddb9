package budget

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/echo-node/echo-node/partition/racetest"
)

// biller charges one cent for each profile once per UTC day of its clock.
type biller struct {
	skew time.Duration
	paid map[string]bool
	days map[int64]int64 // Micro
}

// ask charges for the profiles that were not paid for on this day.
func (b *biller) ask(now time.Time, ids []string) {
	day := floor(now.Add(b.skew).UnixNano(), dayNanos)
	for _, id := range ids {
		if key := fmt.Sprint(day, id); !b.paid[key] {
			b.paid[key] = true
			b.days[day] += 10_000
		}
	}
}

// The money for a day is never exceeded by the biller's clock, and it is spent. This holds with
// repeated requests, and with crashes at any time.
func TestMoneyOfADay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const cents = 300
		o := Options{Limits: map[string]int64{"usd/day": cents * 10_000, "usd/users": cents * 10_000}}
		fresh := func() *Book {
			b, err := New("twitter:", o)
			if err != nil {
				rt.Fatal(err)
			}
			if err := b.Add("app", mustDefault(t, "x-app"), epoch); err != nil {
				rt.Fatal(err)
			}
			return b
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		people := rapid.IntRange(50, 2000).Draw(rt, "people")
		die := rapid.Float64Range(0, 0.05).Draw(rt, "die")
		bill := &biller{skew: time.Duration(rapid.IntRange(-30, 30).Draw(rt, "skew")) * time.Second,
			paid: map[string]bool{}, days: map[int64]int64{}}
		book, paid := fresh(), &Paid{}
		now := epoch
		days := 3
		if racetest.Small(t) {
			days = 1
		}
		for now.Before(epoch.AddDate(0, 0, days)) {
			var ids []string
			for range 1 + rng.IntN(20) {
				ids = append(ids, fmt.Sprint(rng.IntN(people)))
			}
			slices.Sort(ids)
			ids = slices.Compact(ids)
			ask := Ask{Items: int64(len(ids)), Paid: paid.Count(now, "user", ids)}
			ticket, err := book.Reserve(now, "users", ask)
			var w *WaitError
			if asWait(err, &w) {
				now = now.Add(min(w.At.Sub(now), time.Duration(1+rng.IntN(3600))*time.Second))
				continue
			} else if err != nil {
				rt.Fatal(err)
			}
			intent := ticket.Append(nil)
			// this snapshot also contains the ticket; the extra intent does no harm
			before, err := book.Snapshot("app")
			if err != nil {
				rt.Fatal(err)
			}
			bill.ask(now.Add(time.Duration(rng.IntN(1000))*time.Millisecond), ids)
			now = now.Add(time.Second)
			if rng.Float64() < die {
				book, paid = fresh(), &Paid{}
				if err := book.Restore("app", before, [][]byte{intent}, now); err != nil {
					rt.Fatal(err)
				}
				continue
			}
			if err := book.Settle(now, ticket, Answer{Status: 200, Header: http.Header{}, Items: ask.Items,
				Paid: ask.Paid}); err != nil {
				rt.Fatal(err)
			}
			for _, id := range ids {
				paid.Add(ticket.At, "user", id)
			}
			now = now.Add(time.Duration(rng.IntN(300)) * time.Second)
		}
		for day, spent := range bill.days {
			if spent > cents*10_000 {
				rt.Fatalf("day %d: %d spent", day, spent)
			}
			if full := day > floor(epoch.UnixNano(), dayNanos) &&
				day < floor(epoch.UnixNano(), dayNanos)+int64(days); full && die == 0 && people > 600 &&
				spent < cents*9900 {
				rt.Fatalf("day %d: only %d spent", day, spent)
			}
		}
	})
}

// Without a limit from the operator nothing is spent, and Next gives the reason.
func TestNoMoneyNoCall(t *testing.T) {
	b := newBook(t, Options{}, mustDefault(t, "x-app"), "app")
	w, err := b.Next(epoch, "followers", Ask{Items: 1000})
	if err != nil || !w.At.IsZero() || w.Bucket != "usd/day" || w.Reason != "asks for 10000000 of 0 microusd" {
		t.Errorf("%+v %v", w, err)
	}
	if _, err := b.Reserve(epoch, "followers", Ask{Items: 1000}); err == nil ||
		err.Error() != "budget: usd/day: never: asks for 10000000 of 0 microusd" {
		t.Error(err)
	}
	if w, err = b.Next(epoch, "usage", Ask{}); err != nil || w.Bucket != "" {
		t.Errorf("what costs nothing: %+v %v", w, err)
	}
}

// Paid counts per kind and day, remembers at most Max, and treats the minutes before midnight as
// unpaid.
func TestPaid(t *testing.T) {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	p := &Paid{Max: 3}
	for i, id := range []string{"a", "b", "c", "d"} {
		if p.Has(noon, "user", id) {
			t.Error(i)
		}
		p.Add(noon, "user", id)
	}
	ids := []string{"a", "b", "c", "d", "e"}
	if n := p.Count(noon, "user", ids); n != 3 || p.Len() != 3 {
		t.Errorf("%d paid of %d", n, p.Len())
	}
	if p.Has(noon, "post", "a") {
		t.Error("another kind")
	}
	b, err := p.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var q Paid
	if err := q.UnmarshalBinary(b); err != nil || q.Count(noon, "user", ids) != 3 {
		t.Error(err)
	}
	if q.Has(time.Date(2026, 5, 1, 23, 58, 0, 0, time.UTC), "user", "a") {
		t.Error("paid at the edge of the day")
	}
	midnight := time.Date(2026, 5, 2, 0, 0, 1, 0, time.UTC)
	if q.Count(midnight, "user", ids) != 0 || q.Len() != 0 {
		t.Error("the next day")
	}
	q.Add(noon, "user", "late")
	if q.Has(midnight, "user", "late") {
		t.Error("reserved yesterday, so paid yesterday")
	}
}

// Accepted bytes have one form; others give ErrSnapshot and an empty Paid.
func FuzzPaid(f *testing.F) {
	p := &Paid{}
	for _, id := range []string{"a", "b", "c"} {
		p.Add(epoch, "user", id)
	}
	b, err := p.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var p Paid
		if err := p.UnmarshalBinary(b); err != nil {
			if !errors.Is(err, ErrSnapshot) || p.Len() > 0 {
				t.Fatal(err)
			}
			return
		}
		if again, err := p.MarshalBinary(); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x %v", again, err)
		}
	})
}
