// Package session authenticates people and programs by a token, a cookie, or a link that works
// once.
package session

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// Life is the lifetime of a session.
	Life = 12 * time.Hour
	// Burst is how many wrong tokens one address may send at once.
	Burst         = 5
	loginEvery    = 2 * time.Second // after Burst, one wrong token per loginEvery
	maxLoginHosts = 1024            // maximum number of remembered addresses
	loginCodeLife = time.Hour       // of a link that logs in once
)

// Auth checks the token and the session cookie that replaces it in a browser. The cookie is an
// expiry time and its MAC under a key derived from the token. So the cookie never contains the
// token, survives a restart, and ends when the token changes. All methods are safe for concurrent
// use.
type Auth struct {
	token  string // "" refuses everybody
	key    []byte
	cookie string // its name; all ports of a host share cookies, so the name depends on the token

	mu    sync.Mutex
	tries map[string]*rate.Limiter // by address; only wrong tokens count
	code  string                   // logs in once; "" = none
	until time.Time                // when code expires
}

// New returns an Auth for token. With an empty token, it refuses everybody.
func New(token string) *Auth {
	a := &Auth{token: token, tries: make(map[string]*rate.Limiter)}
	a.key = mac([]byte(token), "echo-node session key")
	a.cookie = "echo_session_" + hex.EncodeToString(mac([]byte(token), "echo-node session name")[:4])
	return a
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// None reports whether there is no token.
func (a *Auth) None() bool { return a.token == "" }

// Check reports whether guess is the token. It compares in constant time, whatever the length of
// guess.
func (a *Auth) Check(guess string) bool {
	g, t := sha256.Sum256([]byte(guess)), sha256.Sum256([]byte(a.token))
	return subtle.ConstantTimeCompare(g[:], t[:]) == 1
}

// Allowed reports whether r carries the token or a valid session cookie.
func (a *Auth) Allowed(r *http.Request, now time.Time) bool {
	if a.token == "" {
		return false
	}
	if scheme, guess, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return a.Check(strings.TrimSpace(guess))
	}
	c, err := r.Cookie(a.cookie)
	return err == nil && a.live(c.Value, now)
}

// NewCode returns a code that logs in once within loginCodeLife. It invalidates the previous code.
func (a *Auth) NewCode(now time.Time) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.code, a.until = rand.Text(), now.Add(loginCodeLife)
	return a.code
}

// Redeem reports whether code logs in. If so, it invalidates the code.
func (a *Auth) Redeem(code string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.code == "" || !now.Before(a.until) || subtle.ConstantTimeCompare([]byte(code), []byte(a.code)) != 1 {
		return false
	}
	a.code = ""
	return true
}

// Session returns a cookie value that is valid for Life from now.
func (a *Auth) Session(now time.Time) string {
	until := strconv.FormatInt(now.Add(Life).Unix(), 10)
	return until + "." + hex.EncodeToString(mac(a.key, until))
}

// live reports whether a cookie value is authentic and not expired.
func (a *Auth) live(session string, now time.Time) bool {
	until, sum, ok := strings.Cut(session, ".")
	if !ok || !hmac.Equal([]byte(sum), []byte(hex.EncodeToString(mac(a.key, until)))) {
		return false
	}
	t, err := strconv.ParseInt(until, 10, 64)
	return err == nil && now.Unix() < t
}

// Limiter returns the rate limiter for wrong tokens from r's address.
func (a *Auth) Limiter(r *http.Request) *rate.Limiter {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.tries[host]
	if l == nil {
		if len(a.tries) >= maxLoginHosts {
			clear(a.tries) // clearing is safe: the token has 16 characters or more
		}
		l = rate.NewLimiter(rate.Every(loginEvery), Burst)
		a.tries[host] = l
	}
	return l
}

// SetCookie sets the session cookie to value in the browser of r. A negative life deletes the
// cookie.
func (a *Auth) SetCookie(w http.ResponseWriter, r *http.Request, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: a.cookie, Value: value, Path: "/", MaxAge: int(life / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
}
