package trap

import (
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/partition"
)

func key(t *testing.T, url string) partition.Key {
	t.Helper()
	k, err := partition.ParseKey(url)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Addresses just below and just above each limit.
func TestOf(t *testing.T) {
	for url, want := range map[string]string{
		"https://example.org/":                                                  "",
		"https://example.org/2024/05/05/05/05/page":                             "",
		"https://example.org/doc/doc/doc/doc":                                   "",
		"https://example.org/doc/doc/doc/doc/doc":                               "repetition",
		"https://example.org/a/x/a/x/a/x/a/x/a/x/a/x":                           "",
		"https://example.org/" + strings.Repeat("a/b1/", 6):                     "repetition",
		"https://example.org/?id=1&id=2&id=3&id=4&id=5&id=6":                    "",
		"https://example.org/?" + strings.Repeat("filter=some-long-value&", 12): "repetition",
		"https://example.org" + strings.Repeat("/1", 50):                        "deep-path",
	} {
		if got := Of(key(t, "https://example.org/"), key(t, url), time.Now()); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}

// Only a link from one page of a calendar to another out-of-range year of it is stopped.
func TestCalendar(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		from, to string
		stop     bool
	}{
		{"/agenda/2027/12", "/agenda/2028/1", true},
		{"/agenda/2026/12", "/agenda/2027/1", false},
		{"/agenda/2028/3", "/agenda/2028/4", false}, // one year is reached from elsewhere
		{"/", "/agenda/2031/1", false},
		{"/agenda/1970/1", "/agenda/1969/12", true},
		{"/archive", "/archive/1890/12/01", false},
		{"/cal?month=12&year=2027", "/cal?month=1&year=2028", true},
		{"/cal?view=day&date=2027-12-31", "/cal?view=day&date=2028-01-01", true},
		{"/cal?date=20271231", "/cal?date=20280101", true},
		{"/cal?ym=202712", "/cal?ym=202801", true},
		{"/cal?time=1830000000#x", "/cal?time=1832976000", true},
		{"/day/2027-12-31.html", "/day/2028-01-01.html", false}, // the date is in a file name, which no calendar turns
		{"/topic/5123/2", "/topic/5123/3", false},
		{"/topic/5123", "/topic/5124", false},
		{"/list?start=100005", "/list?start=100010", false},
		{"/a/2027/12", "/b/2028/1", false},
		{"/?id=2027", "/?id=2099", false},
	} {
		from, to := key(t, "https://example.org"+c.from), key(t, "https://example.org"+c.to)
		if got := Of(from, to, now) == "calendar"; got != c.stop {
			t.Errorf("%s to %s: stopped %t", c.from, c.to, got)
		}
	}
}

// The result depends on nothing but the arguments. A page never leads to itself through a calendar.
func FuzzTrap(f *testing.F) {
	f.Add("https://example.org/cal?date=2027-12-31", "https://example.org/cal?date=2028-01-01")
	f.Add("https://example.org/2027/12", "https://example.org/2028/1/")
	f.Fuzz(func(t *testing.T, from, to string) {
		a, err := partition.ParseKey(from)
		b, err2 := partition.ParseKey(to)
		if err != nil || err2 != nil {
			return
		}
		now := time.Unix(1_800_000_000, 0)
		if why := Of(a, b, now); why != Of(a, b, now) || why == "calendar" && Of(b, b, now) == "calendar" {
			t.Errorf("%s, %s: %q", a, b, why)
		}
	})
}
