package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/echo-node/echo-node/node/api/session"
)

// needsToken reports whether r needs the token. Reading needs it where reading is not open. Every
// change needs it. A browser also needs it when it does not send Sec-Fetch-Site.
func (s *Server) needsToken(r *http.Request) bool {
	switch {
	case free(r):
		return false
	case !s.open:
		return true
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions:
		return true
	}
	return r.Header.Get(fetchSite) == "" && strings.HasPrefix(r.UserAgent(), "Mozilla/")
}

// login handles POST /login: it checks the form's token and sets the session cookie.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	a, now := s.auth, time.Now()
	if a.None() {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	tries := a.Limiter(r)
	if tries.TokensAt(now) < 1 {
		http.Redirect(w, r, "/login?wait=1", http.StatusSeeOther)
		return
	}
	if err := r.ParseForm(); err != nil {
		writeProblem(w, r, http.StatusBadRequest, "the form cannot be read: "+err.Error())
		return
	}
	if !a.Check(strings.TrimSpace(r.PostForm.Get("token"))) {
		tries.AllowN(now, 1)
		s.log.Warn("wrong API token at login", "remote", r.RemoteAddr)
		http.Redirect(w, r, "/login?wrong=1", http.StatusSeeOther)
		return
	}
	a.SetCookie(w, r, a.Session(now), session.Life)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// LoginPath returns the path of a link that logs a browser in once, within an hour. It invalidates
// the previous link. The first person to open the link may do what the token allows.
func (s *Server) LoginPath() string {
	return "/login?code=" + s.auth.NewCode(time.Now())
}

// loginPage handles GET /login: it shows the page that asks for the token, or logs in by a code.
func (s *Server) loginPage(ui http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		code := r.URL.Query().Get("code")
		if code == "" {
			ui.ServeHTTP(w, r)
			return
		}
		a, now := s.auth, time.Now()
		tries := a.Limiter(r)
		switch {
		case tries.TokensAt(now) < 1:
			http.Redirect(w, r, "/login?wait=1", http.StatusSeeOther)
		case !a.Redeem(code, now):
			tries.AllowN(now, 1)
			s.log.Warn("a login link that is used, too old or wrong", "remote", r.RemoteAddr)
			http.Redirect(w, r, "/login?used=1", http.StatusSeeOther)
		default:
			a.SetCookie(w, r, a.Session(now), session.Life)
			http.Redirect(w, r, "/", http.StatusSeeOther)
		}
	}
}

// logout handles POST /logout: it deletes the session cookie.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	s.auth.SetCookie(w, r, "", -time.Second)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
