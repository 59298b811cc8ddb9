package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/net/netutil"

	"github.com/echo-node/echo-node/node/api/session"
)

// ErrToken is returned by New and Serve for an address that other machines can reach, when no
// token is set.
var ErrToken = errors.New("an API that is not on a loopback address needs a token: " +
	"give --api-token-file FILE (made by: head -c 32 /dev/urandom | base64 > FILE), or bind it to 127.0.0.1")

// Options are the arguments of New.
type Options struct {
	Peer Peer
	Addr string // HOST:PORT that the listener is bound to; "" is a loopback address
	// needed by every request; 16 to 512 visible ASCII characters; "" none, on loopback only
	Token string
	// Operator is the token for changes, on loopback and without a Token; reading needs none.
	// Without both tokens nothing can be changed.
	Operator string
	Version  string        // of the program, shown in /openapi.json
	Timeout  time.Duration // for one response, except an export; 0 is 30 s
	Logger   *slog.Logger  // nil discards
	// the dashboard: GET /, /login, /ui/ and POST /seed, /override; nil leaves them out
	UI http.Handler
}

func (o Options) validate() error {
	var faults []error
	if o.Addr != "" {
		if _, _, err := net.SplitHostPort(o.Addr); err != nil {
			faults = append(faults, fmt.Errorf("address %q is not HOST:PORT", o.Addr))
		} else if o.Token == "" && !isLoopback(o.Addr) {
			faults = append(faults, fmt.Errorf("%s: %w", o.Addr, ErrToken))
		}
	}
	if token := cmp.Or(o.Token, o.Operator); token != "" {
		if n := len(token); n < 16 || n > 512 {
			faults = append(faults, fmt.Errorf("the token has %d characters; it must have 16 to 512", n))
		}
		if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			faults = append(faults, errors.New("the token must be visible ASCII characters without spaces"))
		}
	}
	if o.Timeout < 0 {
		faults = append(faults, fmt.Errorf("timeout %s is negative", o.Timeout))
	}
	if len(faults) > 0 {
		return fmt.Errorf("api: %w", errors.Join(faults...))
	}
	return nil
}

// Server serves the HTTP API of one peer. It is an http.Handler and safe for concurrent use.
type Server struct {
	peer     Peer
	addr     string
	loopback bool
	ui       bool
	timeout  time.Duration
	stall    time.Duration // stallTimeout
	grace    time.Duration // shutdownGrace
	log      *slog.Logger
	auth     *session.Auth
	open     bool // to read needs no token: the server is on loopback and its token only the operator's
	metrics  *metrics
	mux      *http.ServeMux
	api      huma.API
	handler  http.Handler  // mux behind the guards
	exports  chan struct{} // one token per running export
	requests atomic.Uint64
	boot     string // makes request IDs differ between runs
}

// New returns a Server. It returns ErrToken when other machines can reach o.Addr and no token
// is set.
func New(o Options) (*Server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	s := &Server{
		peer: o.Peer.Complete(), addr: o.Addr, loopback: o.Addr == "" || isLoopback(o.Addr), ui: o.UI != nil,
		timeout: o.Timeout,
		stall:   stallTimeout, grace: shutdownGrace, log: o.Logger,
		auth: session.New(cmp.Or(o.Token, o.Operator)), open: o.Token == "", mux: http.NewServeMux(),
		exports: make(chan struct{}, maxExports),
		boot:    fmt.Sprintf("%08x", uint32(time.Now().UnixMilli()/1000)),
	}
	if s.timeout == 0 {
		s.timeout = defaultTimeout
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.metrics = newMetrics(s.peer.Metrics)
	s.routes(o.Version)
	s.plainRoutes(o.UI)
	s.handler = s.guard(http.HandlerFunc(s.dispatch))
	return s, nil
}

// ServeHTTP responds to one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Serve serves on ln until ctx ends. Then it accepts no more requests, gives running requests 5
// seconds, and returns nil. A connection without a request is not waited for. Serve closes ln.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	if addr := ln.Addr(); strings.HasPrefix(addr.Network(), "tcp") && !isLoopback(addr.String()) {
		var err error
		switch {
		case s.open:
			err = fmt.Errorf("api: %s: %w", addr, ErrToken)
		case s.loopback:
			err = fmt.Errorf("api: the listener is on %s, but the server was made for %q", addr, s.addr)
		}
		if err != nil {
			return errors.Join(err, ln.Close())
		}
	}
	// Running requests must live until the end of the grace, so they do not end with ctx.
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	unused := newUnusedConns()
	hs := &http.Server{
		Handler: s, BaseContext: func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: s.timeout + readTimeout, IdleTimeout: idleTimeout,
		WriteTimeout:   s.timeout + readTimeout, // an export moves its own deadline
		MaxHeaderBytes: maxHeaderBytes,
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ConnState:      unused.changed,
	}
	served := make(chan error, 1)
	go func() { served <- hs.Serve(netutil.LimitListener(ln, maxConns)) }()
	select {
	case err := <-served:
		return errors.Join(fmt.Errorf("api: serve: %w", err), hs.Close())
	case <-ctx.Done():
	}
	unused.close()
	defer time.AfterFunc(saidAfter, func() {
		s.log.Info("stopping: requests under way have a moment to end", "grace", s.grace)
	}).Stop()
	grace, stop := context.WithTimeout(base, s.grace)
	defer stop()
	if err := hs.Shutdown(grace); err != nil {
		cancel()
		s.log.Warn("requests were cut off at shutdown", "err", err)
		if err := hs.Close(); err != nil {
			s.log.Warn("close api server", "err", err)
		}
	}
	<-served
	return nil
}

// isLoopback reports whether addr, HOST:PORT, can be reached only from this machine.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && isLoopbackHost(host)
}

func isLoopbackHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
