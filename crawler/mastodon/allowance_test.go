package mastodon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/mastodontest"
	"github.com/echo-node/echo-node/crawler/fetch"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// The headers of real servers, and those of the drafts.
func TestReadAllowance(t *testing.T) {
	in := func(d time.Duration) time.Time { return noon.Add(d) }
	for _, c := range []struct {
		head             string
		limit, remaining int64
		reset            time.Time
		after            time.Duration
	}{
		{"", -1, -1, time.Time{}, -1},
		{"X-RateLimit-Limit: 300|X-RateLimit-Remaining: 299|X-RateLimit-Reset: 2026-11-21T12:05:00.000000Z", 300, 299, in(5 * time.Minute), -1},                 // Mastodon
		{"X-RateLimit-Limit: 300|X-RateLimit-Remaining: 0|X-RateLimit-Reset: 2026-11-21T12:04:23.002Z", 300, 0, in(4*time.Minute + 23002*time.Millisecond), -1}, // GoToSocial
		{"RateLimit-Limit: 3000|RateLimit-Remaining: 2999|RateLimit-Reset: 1795262400|RateLimit-Policy: 3000;w=300", 3000, 2999, time.Unix(1795262400, 0).UTC(), -1},
		{"RateLimit-Limit: 100, 100;w=60|RateLimit-Remaining: 50|RateLimit-Reset: 30", 100, 50, in(30 * time.Second), -1},
		{"RateLimit: limit=100, remaining=50, reset=30", 100, 50, in(30 * time.Second), -1},
		{`RateLimit: "default";r=50;t=30`, -1, 50, in(30 * time.Second), -1},
		{`RateLimit: "minute";r=50;t=30, "hour";r=3;t=600`, -1, 3, in(10 * time.Minute), -1},
		{"X-Rate-Limit-Limit: 15|X-Rate-Limit-Remaining: 14|X-Rate-Limit-Reset: 1795262400", 15, 14, time.Unix(1795262400, 0).UTC(), -1},
		{"X-RateLimit-Limit: 300|X-RateLimit-Remaining: 200|RateLimit-Limit: 10|RateLimit-Remaining: 2", 10, 2, time.Time{}, -1},
		{"X-RateLimit-Reset: 1795262400000", -1, -1, time.Unix(1795262400, 0).UTC(), -1},
		{"X-RateLimit-Reset: Sat, 21 Nov 2026 12:01:00 GMT", -1, -1, in(time.Minute), -1},
		{"Retry-After: 290", -1, -1, time.Time{}, 290 * time.Second},
		{"Retry-After: Sat, 21 Nov 2026 12:01:00 GMT", -1, -1, time.Time{}, time.Minute},
		{"Retry-After: Sat, 21 Nov 2026 11:00:00 GMT", -1, -1, time.Time{}, 0},
		{"X-RateLimit-Limit: lots|X-RateLimit-Remaining: -4|X-RateLimit-Reset: soon|Retry-After: later", -1, -1, time.Time{}, -1},
		{"X-RateLimit-Limit: 99999999999999999999|X-RateLimit-Reset: 1e300", -1, -1, time.Time{}, -1},
		{"X-RateLimit-Reset: NaN", -1, -1, time.Time{}, -1},
		{"X-RateLimit-Reset: 2126-11-21T12:05:00Z", -1, -1, time.Time{}, -1},
	} {
		h := http.Header{"Date": {"Sat, 21 Nov 2026 11:59:58 GMT"}}
		for f := range strings.SplitSeq(c.head, "|") {
			if name, value, ok := strings.Cut(f, ": "); ok {
				h.Add(name, value)
			}
		}
		a := ReadAllowance(h, 200, noon)
		if a.Limit != c.limit || a.Remaining != c.remaining || !a.Reset.Equal(c.reset) || a.RetryAfter != c.after || a.Said() != (c.limit >= 0 || c.remaining >= 0 || !c.reset.IsZero() || c.after >= 0) ||
			!a.At.Equal(noon) || !a.Date.Equal(noon.Add(-2*time.Second)) {
			t.Errorf("%s: %+v", c.head, a)
		}
	}
}

func FuzzReadAllowance(f *testing.F) {
	f.Add("300", "0", "2026-11-21T12:05:00.000000Z", "30", `"d";r=1;t=2`)
	f.Add("1", "2", "1795262400", "Sat, 21 Nov 2026 12:01:00 GMT", "limit=1, remaining=2, reset=3")
	f.Fuzz(func(t *testing.T, limit, remaining, reset, after, one string) {
		h := http.Header{"X-Ratelimit-Limit": {limit}, "X-Ratelimit-Remaining": {remaining}, "X-Ratelimit-Reset": {reset}, "Retry-After": {after}, "Ratelimit": {one}}
		a := ReadAllowance(h, 429, noon)
		if a.Limit < -1 || a.Remaining < -1 || a.RetryAfter < -1 || a.RetryAfter > 24*time.Hour || !a.Reset.IsZero() && (a.Reset.Sub(noon) > maxReset || noon.Sub(a.Reset) > maxReset) {
			t.Errorf("%+v", a)
		}
	})
}

// Every answer is told of, in whatever form the server tells its limits; a
// refusal says so, and after the reset the same page comes.
func TestLimitsAreHeard(t *testing.T) {
	for _, says := range []mastodontest.Headers{mastodontest.ISO, mastodontest.Epoch, mastodontest.Draft, mastodontest.DraftSeconds, mastodontest.DraftLine, mastodontest.NoHeaders} {
		for _, after := range []mastodontest.After{mastodontest.NoAfter, mastodontest.AfterSeconds, mastodontest.AfterDate} {
			p := visit(t, world{Seed: 3, People: 60, Quiet: true, Rate: -1, Says: says, After: after, Lies: lies{MaxLimit: 5},
				Limits: []mastodontest.Limit{{Name: "all", Max: 40, Window: 5 * time.Minute}, {Name: "paging", Max: 4, Window: 15 * time.Minute, Paging: true}}})
			who, truth := p.star()
			e, err := p.c.Edges(who, Followers, "", Limits{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			refused := 0
			for !e.Done() {
				page, err := e.Next(context.Background())
				if WordOf(err) == Limited {
					a := p.heard[len(p.heard)-1]
					wait := time.Duration(0)
					if says != mastodontest.NoHeaders {
						if a.Remaining != 0 || !a.Paging || a.Class != ClassFollowers || a.Status != 429 || a.Reset.IsZero() {
							t.Fatalf("form %d: %+v", says, a)
						}
						wait = a.Reset.Sub(p.clock.Now())
					}
					if after != mastodontest.NoAfter {
						if d := a.RetryAfter - wait; says != mastodontest.NoHeaders && (d < 0 || d > 2*time.Second) || err.(*Fault).Retry != a.RetryAfter {
							t.Fatalf("form %d, %d: waits of %v and %v", says, after, wait, a.RetryAfter)
						}
						wait = a.RetryAfter
					} else if a.RetryAfter != -1 {
						t.Fatalf("%+v", a)
					}
					if wait == 0 {
						wait = 15 * time.Minute
					}
					refused++
					p.clock.add(wait)
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, q := range page {
					got = append(got, q.Acct)
				}
			}
			if !same(got, truth.Followers) || refused == 0 || refused != p.w.Report().Refused || len(p.heard) != p.w.Report().Requests || !e.Listing().Complete {
				t.Errorf("form %d, %d: %d of %d, refused %d, heard %d of %d", says, after, len(got), len(truth.Followers), refused, len(p.heard), p.w.Report().Requests)
			}
		}
	}
}

// A token has no printed form, whatever holds it, and goes to its server only.
func TestCredentialsAreNotPrinted(t *testing.T) {
	cred, err := NewCredential("ana", "s3cret")
	if err != nil {
		t.Fatal(err)
	}
	var sent []string
	c, err := New(Options{Base: "https://m.test", Credential: cred, Do: func(_ context.Context, call Call) (*fetch.Response, error) {
		sent = append(sent, call.Request.URL+" "+call.Request.Header["Authorization"])
		return nil, errors.New("no network")
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, fault := c.Lookup(context.Background(), "rui")
	if len(sent) != 1 || sent[0] != "https://m.test/api/v1/accounts/lookup?acct=rui Bearer s3cret" || WordOf(fault) != Unreachable || !strings.Contains(fault.Error(), "no network") {
		t.Errorf("%q %v", sent, fault)
	}
	type holder struct{ hidden Credential }
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "cred", cred, "client", fmt.Sprint(c), "options", c.o.Credential)
	asJSON, _ := json.Marshal(struct{ C Credential }{cred})
	for _, text := range []string{
		fmt.Sprint(cred), fmt.Sprintf("%v %+v %#v %s %q %x %d", cred, cred, cred, cred, cred, cred, cred), fmt.Sprintf("%v %+v %#v", holder{cred}, holder{cred}, &holder{cred}),
		fmt.Sprintf("%+v %#v", c, *c), string(asJSON), log.String(), fault.Error(),
	} {
		if strings.Contains(text, "s3cret") || strings.Contains(text, "733363726574") {
			t.Errorf("printed: %s", text)
		}
	}
	for _, bad := range []string{"", " ", "a b", "a\nb", "é", strings.Repeat("x", maxToken+1)} {
		if _, err := NewCredential("x", bad); err == nil {
			t.Errorf("%.20q is a token", bad)
		}
	}
	if _, err := New(Options{Base: "http://m.test", Credential: cred}); err == nil || !strings.Contains(err.Error(), "plain http") || !strings.Contains(err.Error(), "no Do") {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"", "m.test", "ftp://m.test", "https://u:p@m.test", "https://m.test/x", "https://m.test?x"} {
		if _, err := New(Options{Base: bad, Do: c.o.Do}); err == nil {
			t.Errorf("%q is a base", bad)
		}
	}
}
