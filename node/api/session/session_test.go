package session

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

const testToken = "0123456789abcdef-token"

func testTime() time.Time { return time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC) }

func TestASessionEnds(t *testing.T) {
	a, other := New(testToken), New(testToken+"2")
	s := a.Session(testTime())
	for _, c := range []struct {
		a    *Auth
		at   time.Time
		want bool
	}{{a, testTime(), true}, {a, testTime().Add(Life - time.Second), true}, {a, testTime().Add(Life), false},
		{other, testTime(), false}} {
		if got := c.a.live(s, c.at); got != c.want {
			t.Errorf("at %s: %v", c.at, got)
		}
	}
	if a.cookie == other.cookie {
		t.Error("two peers on one host would overwrite each other's cookie")
	}
}

func TestTheLoginTableIsBounded(t *testing.T) {
	a := New(testToken)
	for i := range 3 * maxLoginHosts {
		a.Limiter(&http.Request{RemoteAddr: fmt.Sprintf("192.0.2.1%d:1", i)})
	}
	a.Limiter(&http.Request{RemoteAddr: "no port"})
	if len(a.tries) > maxLoginHosts {
		t.Errorf("%d entries", len(a.tries))
	}
}

func TestALinkEnds(t *testing.T) {
	old := New(testToken)
	if code := old.NewCode(testTime()); old.Redeem(code, testTime().Add(loginCodeLife)) ||
		!old.Redeem(code, testTime().Add(loginCodeLife-time.Second)) {
		t.Error("a link does not end")
	}
	if old.Redeem("", testTime()) {
		t.Error("no code logs in")
	}
}
