package api

import (
	"crypto/hmac"
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
	sessionLife   = 12 * time.Hour
	loginBurst    = 5               // wrong tokens at once from one address
	loginEvery    = 2 * time.Second // then one in this time
	maxLoginHosts = 1024            // addresses remembered
)

// auth knows the token and the cookie that stands for it in a browser. The
// cookie is an expiry and its MAC under a key derived from the token: it never
// holds the token, survives a restart, and ends when the token changes.
type auth struct {
	token  string // "" lets everybody in
	key    []byte
	cookie string // name; cookies are shared by all ports of a host, so it is one per token

	mu    sync.Mutex
	tries map[string]*rate.Limiter // by address; wrong tokens only
}

func newAuth(token string) *auth {
	a := &auth{token: token, tries: make(map[string]*rate.Limiter)}
	a.key = mac([]byte(token), "echo-node session key")
	a.cookie = "echo_session_" + hex.EncodeToString(mac([]byte(token), "echo-node session name")[:4])
	return a
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// check compares in constant time, whatever the length of the guess.
func (a *auth) check(guess string) bool {
	g, t := sha256.Sum256([]byte(guess)), sha256.Sum256([]byte(a.token))
	return subtle.ConstantTimeCompare(g[:], t[:]) == 1
}

// allowed tells whether r carries the token or a live session.
func (a *auth) allowed(r *http.Request, now time.Time) bool {
	if a.token == "" {
		return true
	}
	if scheme, guess, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return a.check(strings.TrimSpace(guess))
	}
	c, err := r.Cookie(a.cookie)
	return err == nil && a.live(c.Value, now)
}

func (a *auth) session(now time.Time) string {
	until := strconv.FormatInt(now.Add(sessionLife).Unix(), 10)
	return until + "." + hex.EncodeToString(mac(a.key, until))
}

func (a *auth) live(session string, now time.Time) bool {
	until, sum, ok := strings.Cut(session, ".")
	if !ok || !hmac.Equal([]byte(sum), []byte(hex.EncodeToString(mac(a.key, until)))) {
		return false
	}
	t, err := strconv.ParseInt(until, 10, 64)
	return err == nil && now.Unix() < t
}

// limiter is the budget of wrong tokens of r's address.
func (a *auth) limiter(r *http.Request) *rate.Limiter {
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
		l = rate.NewLimiter(rate.Every(loginEvery), loginBurst)
		a.tries[host] = l
	}
	return l
}

func (a *auth) setCookie(w http.ResponseWriter, r *http.Request, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: a.cookie, Value: value, Path: "/", MaxAge: int(life / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
}

// login is POST /login: the form's token becomes a cookie.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	a, now := s.auth, time.Now()
	if a.token == "" {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	tries := a.limiter(r)
	if tries.TokensAt(now) < 1 {
		http.Redirect(w, r, "/login?wait=1", http.StatusSeeOther)
		return
	}
	if err := r.ParseForm(); err != nil {
		writeProblem(w, r, http.StatusBadRequest, "the form cannot be read: "+err.Error())
		return
	}
	if !a.check(strings.TrimSpace(r.PostForm.Get("token"))) {
		tries.AllowN(now, 1)
		s.log.Warn("wrong API token at login", "remote", r.RemoteAddr)
		http.Redirect(w, r, "/login?wrong=1", http.StatusSeeOther)
		return
	}
	a.setCookie(w, r, a.session(now), sessionLife)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// logout is POST /logout.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	s.auth.setCookie(w, r, "", -time.Second)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
