package ui

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/safetext"
)

//go:embed page/*.html
var pages embed.FS

//go:embed static
var static embed.FS

const (
	recentRecords = 15
	shownFailures = 10
	pageTimeout   = 20 * time.Second
)

// Options are the arguments of New.
type Options struct {
	Peer  api.Peer
	Login bool         // the API has a token: show a way to log out
	Log   *slog.Logger // nil discards
}

// UI serves GET /, /login, /favicon.ico, /ui/live, /ui/static/ and POST /seed, /override. It is
// safe for concurrent use. Set it as api.Options.UI.
type UI struct {
	peer  api.Peer
	login bool
	log   *slog.Logger
	pages *template.Template
	mux   *http.ServeMux
}

// New returns the dashboard.
func New(o Options) (*UI, error) {
	t, err := template.New("").Funcs(helpers()).ParseFS(pages, "page/*.html")
	if err != nil {
		return nil, fmt.Errorf("ui: %w", err)
	}
	files, err := fs.Sub(static, "static")
	if err != nil {
		return nil, fmt.Errorf("ui: %w", err)
	}
	u := &UI{peer: o.Peer.Complete(), login: o.Login, log: o.Log, pages: t, mux: http.NewServeMux()}
	if u.log == nil {
		u.log = slog.New(slog.DiscardHandler)
	}
	serve := http.FileServerFS(files)
	u.mux.HandleFunc("GET /{$}", u.home)
	u.mux.HandleFunc("GET /ui/live", u.live)
	u.mux.HandleFunc("GET /login", u.loginPage)
	u.mux.HandleFunc("POST /seed", u.posted(u.seed))
	u.mux.HandleFunc("POST /override", u.posted(u.overrule))
	u.mux.Handle("GET /ui/static/", http.StripPrefix("/ui/static/", fresh(serve)))
	u.mux.Handle("GET /favicon.ico", http.RedirectHandler("/ui/static/icon.svg", http.StatusFound))
	return u, nil
}

// ServeHTTP responds to one request.
func (u *UI) ServeHTTP(w http.ResponseWriter, r *http.Request) { u.mux.ServeHTTP(w, r) }

// fresh lets a browser cache the static files for a while.
func fresh(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=300")
		next.ServeHTTP(w, r)
	})
}

// live is the part of the page that is refreshed. A part that could not be read is nil and
// named in Troubles.
type live struct {
	Status   *api.Status
	Peers    []api.PeerInfo
	Recent   []api.Hit
	Failures []api.Failure
	More     int // failures not shown
	Troubles []string
	Now      time.Time
}

// page is everything that a page may show.
type page struct {
	live
	Login   bool
	Asked   bool // the request has a query
	Form    form
	Answer  *api.Answer
	Next    string // address of the next hits, "" when there are none
	Problem string // why the query, the seeds or the verdict failed
	Seeds   []api.SeedAnswer
	Seeded  string         // what the person typed
	Word    api.Overruling // a person's verdict as typed
	Taken   bool           // Word was stored
	Wrong   bool           // the token at the login was wrong
	Wait    bool           // there were too many wrong tokens
	Used    bool           // a login link was used before, or is too old
	Look    bool           // this browser may read but not change anything: show how to log in
}

// form is the query as typed, to show it again.
type form struct{ Q, Kind, Lang, Site, Since, Until string }

// look reads everything that the live part shows from the peer, concurrently. It leaves out the
// parts for which this peer has no function.
func (u *UI) look(ctx context.Context) live {
	l := live{Now: time.Now().UTC()}
	var mu sync.Mutex
	var wg sync.WaitGroup
	part := func(name string, ask func() error) {
		wg.Go(func() {
			err := ask()
			if err == nil || errors.Is(err, api.ErrNotBuilt) {
				return
			}
			u.log.Warn("dashboard part failed", "part", name, "err", err)
			mu.Lock()
			defer mu.Unlock()
			l.Troubles = append(l.Troubles, name+": "+err.Error())
		})
	}
	part("status", func() error {
		s, err := u.peer.Status(ctx)
		if err == nil {
			l.Status = &s
		}
		return err
	})
	part("peers", func() (err error) { l.Peers, err = u.peer.Peers(ctx); return err })
	part("recent records", func() (err error) { l.Recent, err = u.peer.Recent(ctx, recentRecords); return err })
	part("errors", func() (err error) { l.Failures, err = u.peer.Errors(ctx); return err })
	wg.Wait()
	if n := len(l.Failures); n > shownFailures {
		l.Failures, l.More = l.Failures[:shownFailures], n-shownFailures
	}
	return l
}

// page returns a page for r. If the browser may not change anything, the page shows how to log
// in.
func (u *UI) page(r *http.Request) page {
	look := api.ReadOnly(r.Context())
	return page{Login: u.login && !look, Look: look}
}

func (u *UI) home(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	v := r.URL.Query()
	p := u.page(r)
	p.Asked = v.Has("q")
	p.Form = form{v.Get("q"), v.Get("kind"), v.Get("lang"), v.Get("site"), v.Get("since"), v.Get("until")}
	status := http.StatusOK
	if p.Asked {
		status = u.query(ctx, r, &p)
	}
	p.live = u.look(ctx)
	u.write(w, status, "home", p)
}

// query sets p's answer, or its problem, and returns the page's status.
func (u *UI) query(ctx context.Context, r *http.Request, p *page) int {
	q, err := api.ParseQuery(r.URL.Query())
	if err == nil {
		var a api.Answer
		if a, err = u.peer.Query(ctx, q); err == nil {
			p.Answer = &a
			if q.Cursor = a.Cursor; a.Cursor != "" && len(a.Hits) > 0 {
				next := q.Values()
				next.Set("q", q.Q) // the page runs a query only if q is present
				p.Next = "/?" + next.Encode()
			}
			return http.StatusOK
		}
	}
	status, text := api.Explain(err)
	p.Problem = text
	return status
}

func (u *UI) live(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	u.write(w, http.StatusOK, "live", page{live: u.look(ctx)})
}

func (u *UI) loginPage(w http.ResponseWriter, r *http.Request) {
	u.write(w, http.StatusOK, "login", page{Wrong: r.URL.Query().Has("wrong"), Wait: r.URL.Query().Has("wait"),
		Used: r.URL.Query().Has("used")})
}

// posted responds to a form with the page: the result of act, or why act failed.
func (u *UI) posted(act func(ctx context.Context, form url.Values, p *page) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
		defer cancel()
		p := u.page(r)
		status := http.StatusOK
		err := r.ParseForm()
		if err == nil {
			err = act(ctx, r.PostForm, &p)
		} else {
			err = fmt.Errorf("%w: the form cannot be read: %w", api.ErrInvalid, err)
		}
		if err != nil {
			status, p.Problem = api.Explain(err)
		}
		p.live = u.look(ctx)
		u.write(w, status, "home", p)
	}
}

func (u *UI) seed(ctx context.Context, form url.Values, p *page) error {
	p.Seeded = form.Get("seeds")
	texts, err := api.ReadSeeds(strings.NewReader(p.Seeded))
	if err == nil {
		p.Seeds, err = api.Seed(ctx, u.peer, texts)
	}
	return err
}

func (u *UI) overrule(ctx context.Context, form url.Values, p *page) (err error) {
	p.Word = api.Overruling{Key: form.Get("key"), Verdict: form.Get("verdict"), By: form.Get("by"),
		Why: form.Get("why")}
	p.Word, err = api.Overrule(ctx, u.peer, p.Word)
	p.Taken = err == nil
	return err
}

// write renders the complete page before it sends it, so an error never leaves half a page. The
// template escapes what strangers wrote. Here, in one place, write also removes characters that
// would change the order of the text next to it.
func (u *UI) write(w http.ResponseWriter, status int, name string, p page) {
	var b bytes.Buffer
	if err := u.pages.ExecuteTemplate(&b, name, p); err != nil {
		u.log.Error("dashboard template failed", "page", name, "err", err)
		http.Error(w, "the page could not be made; the peer's log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	// the only possible error is a reader that is gone
	_, _ = io.WriteString(w, safetext.Text(b.String()))
}
