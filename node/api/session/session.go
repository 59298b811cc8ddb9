// Package session lets people and programs in by a token, a cookie, or a link that works once.
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
	// Life is that of a session.
	Life = 12 * time.Hour
	// Burst is how many wrong tokens are taken at once from one address.
	Burst         = 5
	loginEvery    = 2 * time.Second // then one in this time
	maxLoginHosts = 1024            // addresses remembered
	loginCodeLife = time.Hour       // of a link that logs in once
)

// Auth knows the token and the cookie that stands for it in a browser. The
// cookie is an expiry and its MAC under a key derived from the token: it never
// holds the token, survives a restart, and ends when the token changes. All methods are safe
// for concurrent use.
type Auth struct {
	token  string // "" lets nobody in
	key    []byte
	cookie string // name; cookies are shared by all ports of a host, so it is one per token

	mu    sync.Mutex
	tries map[string]*rate.Limiter // by address; wrong tokens only
	code  string                   // logs in once; "" = there is none
	until time.Time                // end of code
}

// New makes the Auth of a token; "" lets nobody in.
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

// None says that there is no token.
func (a *Auth) None() bool { return a.token == "" }

// Check compares in constant time, whatever the length of the guess.
func (a *Auth) Check(guess string) bool {
	g, t := sha256.Sum256([]byte(guess)), sha256.Sum256([]byte(a.token))
	return subtle.ConstantTimeCompare(g[:], t[:]) == 1
}

// Allowed tells whether r carries the token or a live session.
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

// NewCode is a code that logs in once within loginCodeLife; the one before is void.
func (a *Auth) NewCode(now time.Time) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.code, a.until = rand.Text(), now.Add(loginCodeLife)
	return a.code
}

// Redeem tells whether code logs in, and voids it.
func (a *Auth) Redeem(code string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.code == "" || !now.Before(a.until) || subtle.ConstantTimeCompare([]byte(code), []byte(a.code)) != 1 {
		return false
	}
	a.code = ""
	return true
}

// Session is the value of a cookie that is good for Life from now.
func (a *Auth) Session(now time.Time) string {
	until := strconv.FormatInt(now.Add(Life).Unix(), 10)
	return until + "." + hex.EncodeToString(mac(a.key, until))
}

func (a *Auth) live(session string, now time.Time) bool {
	until, sum, ok := strings.Cut(session, ".")
	if !ok || !hmac.Equal([]byte(sum), []byte(hex.EncodeToString(mac(a.key, until)))) {
		return false
	}
	t, err := strconv.ParseInt(until, 10, 64)
	return err == nil && now.Unix() < t
}

// Limiter is the budget of wrong tokens of r's address.
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
			clear(a.tries) // forgetting is cheap: the token has 16 characters or more
		}
		l = rate.NewLimiter(rate.Every(loginEvery), Burst)
		a.tries[host] = l
	}
	return l
}

// SetCookie gives the browser of r a cookie with that value; a life below zero takes it away.
func (a *Auth) SetCookie(w http.ResponseWriter, r *http.Request, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: a.cookie, Value: value, Path: "/", MaxAge: int(life / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
}
