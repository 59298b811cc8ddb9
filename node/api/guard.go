package api

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

const fetchSite = "Sec-Fetch-Site" // a browser header that says which page a request comes from

type (
	requestKey  struct{}
	readOnlyKey struct{}
)

// ReadOnly reports whether the request of ctx may read but not change anything. Then the
// dashboard shows how to log in instead of its forms.
func ReadOnly(ctx context.Context) bool {
	readOnly, _ := ctx.Value(readOnlyKey{}).(bool)
	return readOnly
}

func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}

// answer records the status that was sent.
type answer struct {
	http.ResponseWriter
	status int
}

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// guard checks every request: headers, log, panics, Host, origin, limits and the token, in this
// order.
func (s *Server) guard(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := s.boot + "-" + strconv.FormatUint(s.requests.Add(1), 36)
		r = r.WithContext(context.WithValue(r.Context(), requestKey{}, id))
		a := &answer{ResponseWriter: w}
		start := time.Now()
		secure(w.Header())
		defer func() { s.finish(a, r, start, recover()) }()
		if status, detail := s.refuse(r, origin); status != 0 {
			s.writeRefusal(a, r, status, detail)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), readOnlyKey{}, !s.auth.Allowed(r, start)))
		limit := int64(maxFormBytes)
		if r.URL.Path == "/api/v1/seeds" {
			// One more, so that the handler sees that the body is too large.
			limit = maxSeedBytes + 1
		}
		r.Body = http.MaxBytesReader(a, r.Body, limit)
		next.ServeHTTP(a, r)
	})
}

// secure sets the headers that keep a browser from mixing this API with other sites.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "+
		"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// Not no-referrer: with that, a browser sends the dashboard's own forms with "Origin:
	// null".
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// refuse returns the status with which to refuse r, or 0.
func (s *Server) refuse(r *http.Request, origin *http.CrossOriginProtection) (int, string) {
	if s.loopback && !s.knownHost(r.Host) {
		return http.StatusMisdirectedRequest,
			fmt.Sprintf("this peer's API is on a loopback address and does not answer to the name %q", r.Host)
	}
	if err := origin.Check(r); err != nil {
		return http.StatusForbidden, "a page of another origin may not do this: " + err.Error()
	}
	if from := s.otherSite(r); from != "" {
		return http.StatusForbidden, "a page of another origin may not ask this peer: " + from
	}
	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
		return http.StatusBadRequest, "the query string cannot be read: " + err.Error()
	}
	if s.needsToken(r) && !s.auth.Allowed(r, time.Now()) {
		return http.StatusUnauthorized, "this peer's API needs its token: Authorization: Bearer TOKEN"
	}
	return 0, ""
}

// otherSite returns the page of another origin that r comes from, or "". An image, a script or
// a form of such a page could start a query or an export. Such a page may only lead a person to
// the first page, which sends no request to the swarm.
func (s *Server) otherSite(r *http.Request) string {
	leads := (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		(r.URL.Path == "/" || r.URL.Path == "/login") && r.URL.RawQuery == ""
	switch site := r.Header.Get(fetchSite); site {
	case "same-origin", "none": // from our own pages, or typed by a person
		return ""
	case "": // no browser, or one without this header
	default:
		if leads && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" {
			return ""
		}
		return fetchSite + " is " + site
	}
	// If every request needs a token, a browser adds its cookie to no request from another
	// site.
	for _, name := range []string{"Origin", "Referer"} {
		from := r.Header.Get(name)
		if u, err := url.Parse(from); from != "" && s.open && !leads &&
			(err != nil || !strings.EqualFold(u.Host, r.Host)) {
			return name + " is " + from
		}
	}
	return ""
}

func (s *Server) writeRefusal(w http.ResponseWriter, r *http.Request, status int, detail string) {
	if status == http.StatusUnauthorized {
		form := r.Method == http.MethodPost && (r.URL.Path == "/seed" || r.URL.Path == "/override")
		if s.ui && (form || r.Method == http.MethodGet && r.URL.Path == "/") {
			http.Redirect(w, r, "/login", http.StatusSeeOther)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="echo-node"`)
	}
	writeProblem(w, r, status, detail)
}

// free reports whether r needs no token. The free paths reveal nothing about the crawl.
func free(r *http.Request) bool {
	switch r.URL.Path {
	case "/healthz", "/readyz", "/openapi.json", "/login", "/logout", "/favicon.ico":
		return true
	}
	return strings.HasPrefix(r.URL.Path, "/ui/static/")
}

// knownHost reports whether the Host header names this machine itself.
func (s *Server) knownHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return isLoopbackHost(host) || strings.HasSuffix(strings.ToLower(host), ".localhost")
}

// finish turns a panic into a response, then counts and logs the request.
func (s *Server) finish(a *answer, r *http.Request, start time.Time, crash any) {
	elapsed := time.Since(start)
	if crash != nil && crash != http.ErrAbortHandler {
		s.log.Error("api handler panicked", "request", requestID(r.Context()), "path", r.URL.Path,
			"panic", fmt.Sprint(crash), "stack", string(debug.Stack()))
		if a.status == 0 {
			writeProblem(a, r, http.StatusInternalServerError,
				"internal error; the peer's log has it under the ID of this request")
		} else {
			crash = http.ErrAbortHandler // an incomplete response must not look complete
		}
	}
	status := a.status
	if status == 0 {
		status = http.StatusOK
	}
	s.metrics.observe(r, status, elapsed)
	log := s.log.Debug
	if status >= 500 && status != http.StatusNotImplemented && r.URL.Path != "/readyz" {
		log = s.log.Warn
	}
	log("api request", "request", requestID(r.Context()), "method", r.Method, "path", r.URL.Path, "status", status,
		"elapsed", elapsed)
	if crash == http.ErrAbortHandler {
		panic(crash) // net/http closes the connection and logs nothing
	}
}
