package api

import (
	"io"
	"net/http"
	"reflect"
)

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// plainRoutes adds what is not JSON: health, metrics, login and the dashboard.
func (s *Server) plainRoutes(ui http.Handler) {
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeText(w, "ok\n") })
	s.mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := s.peer.Ready(); err != nil {
			writeProblem(w, r, http.StatusServiceUnavailable, "not ready: "+err.Error())
			return
		}
		writeText(w, "ready\n")
	})
	s.mux.Handle("GET /metrics", s.metrics.handler())
	if ui == nil {
		return
	}
	s.mux.HandleFunc("POST /login", s.login)
	s.mux.HandleFunc("POST /logout", s.logout)
	s.mux.HandleFunc("GET /login", s.loginPage(ui))
	for _, pattern := range []string{"GET /{$}", "GET /favicon.ico", "GET /ui/", "POST /seed", "POST /override"} {
		s.mux.Handle(pattern, ui)
	}
}

func writeText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, text) // the only possible error is a reader that is gone
}

// dispatch calls the mux, and turns its plain 404 and 405 responses into problems.
func (s *Server) dispatch(w http.ResponseWriter, r *http.Request) {
	h, pattern := s.mux.Handler(r)
	if pattern != "" {
		s.mux.ServeHTTP(w, r)
		return
	}
	said := &silent{header: http.Header{}}
	h.ServeHTTP(said, r)
	switch said.status {
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", said.header.Get("Allow"))
		writeProblem(w, r, said.status, r.Method+" is not possible here; possible: "+said.header.Get("Allow"))
	default:
		writeProblem(w, r, http.StatusNotFound,
			"there is nothing at "+r.URL.Path+"; GET /openapi.json lists what there is")
	}
}

// silent keeps a response's status and headers and drops its body.
type silent struct {
	header http.Header
	status int
}

func (q *silent) Header() http.Header         { return q.header }
func (q *silent) WriteHeader(status int)      { q.status = status }
func (q *silent) Write(b []byte) (int, error) { return len(b), nil }
