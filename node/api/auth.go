package api

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
	sessionLife   = 12 * time.Hour
	loginBurst    = 5               // wrong tokens at once from one address
	loginEvery    = 2 * time.Second // after that, one in this time
	maxLoginHosts = 1024            // addresses remembered
	loginCodeLife = time.Hour       // of a link that logs in once
)

// auth checks the token and the session cookie of a browser. The cookie is an expiry time and
// its MAC under a key derived from the token. So it never contains the token, stays valid over
// a restart, and ends when the token changes.
type auth struct {
	token string // "" accepts no client
	// reading needs no token: the server is on loopback and has at most the operator's token
	open   bool
	key    []byte
	cookie string // cookie name; all ports of a host share cookies, so each token has its own name

	mu    sync.Mutex
	tries map[string]*rate.Limiter // by address; wrong tokens only
	code  string                   // logs in once; "" = there is none
	until time.Time                // expiry of code
}

func newAuth(token string, open bool) *auth {
	a := &auth{token: token, open: open, tries: make(map[string]*rate.Limiter)}
	a.key = mac([]byte(token), "echo-node session key")
	a.cookie = "echo_session_" + hex.EncodeToString(mac([]byte(token), "echo-node session name")[:4])
	return a
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// check compares in constant time for any length of the guess.
func (a *auth) check(guess string) bool {
	g, t := sha256.Sum256([]byte(guess)), sha256.Sum256([]byte(a.token))
	return subtle.ConstantTimeCompare(g[:], t[:]) == 1
}

// allowed reports whether r carries the token or a live session.
func (a *auth) allowed(r *http.Request, now time.Time) bool {
	if a.token == "" {
		return false
	}
	if scheme, guess, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return a.check(strings.TrimSpace(guess))
	}
	c, err := r.Cookie(a.cookie)
	return err == nil && a.live(c.Value, now)
}

// needed reports whether r needs the token. It does to read where reading is not open, and to
// change anything. It also does if a browser does not say which page the request is from.
func (a *auth) needed(r *http.Request) bool {
	switch {
	case free(r):
		return false
	case !a.open:
		return true
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions:
		return true
	}
	return r.Header.Get(fetchSite) == "" && strings.HasPrefix(r.UserAgent(), "Mozilla/")
}

// newCode returns a code that logs in once within loginCodeLife. It makes the previous code
// invalid.
func (a *auth) newCode(now time.Time) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.code, a.until = rand.Text(), now.Add(loginCodeLife)
	return a.code
}

// redeem reports whether code logs in, and makes it invalid.
func (a *auth) redeem(code string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.code == "" || !now.Before(a.until) || subtle.ConstantTimeCompare([]byte(code), []byte(a.code)) != 1 {
		return false
	}
	a.code = ""
	return true
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

// limiter returns the limiter of wrong tokens for r's address.
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
			clear(a.tries) // forgetting is safe: the token has 16 characters or more
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

// login is POST /login: it exchanges the form's token for a cookie.
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

// LoginPath returns the path of a link that logs a browser in once, within an hour. The
// previous link becomes invalid. The first person to open it may do what the token allows.
func (s *Server) LoginPath() string {
	return "/login?code=" + s.auth.newCode(time.Now())
}

// loginPage is GET /login: the page with the form for the token, or a link with a code.
func (s *Server) loginPage(ui http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		code := r.URL.Query().Get("code")
		if code == "" {
			ui.ServeHTTP(w, r)
			return
		}
		a, now := s.auth, time.Now()
		tries := a.limiter(r)
		switch {
		case tries.TokensAt(now) < 1:
			http.Redirect(w, r, "/login?wait=1", http.StatusSeeOther)
		case !a.redeem(code, now):
			tries.AllowN(now, 1)
			s.log.Warn("a login link that is used, too old or wrong", "remote", r.RemoteAddr)
			http.Redirect(w, r, "/login?used=1", http.StatusSeeOther)
		default:
			a.setCookie(w, r, a.session(now), sessionLife)
			http.Redirect(w, r, "/", http.StatusSeeOther)
		}
	}
}

// logout is POST /logout.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	s.auth.setCookie(w, r, "", -time.Second)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
