package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Options of New. A zero limit is its default.
type Options struct {
	Client   *fetch.Client // required
	Retry    fetch.Retry
	MaxLag   time.Duration // the longest Crawl-delay honoured; a site asking for more is skipped; default 30 s
	MaxLinks int           // links kept of one page, default 10,000
	MaxText  int           // bytes of text kept of one page, default 1 MiB
	MaxTime  time.Duration // of one extraction, default 10 s
}

// Source fetches page Keys. Safe for concurrent use.
type Source struct {
	o     Options
	langs *tongues
}

// New is a Source; it reports every fault of o at once.
func New(o Options) (*Source, error) {
	var errs []error
	if o.Client == nil {
		errs = append(errs, errors.New("web: no client"))
	}
	if o.MaxLag < 0 || o.MaxLinks < 0 || o.MaxText < 0 || o.MaxTime < 0 {
		errs = append(errs, fmt.Errorf("web: negative limit: MaxLag %v, MaxLinks %d, MaxText %d, MaxTime %v", o.MaxLag, o.MaxLinks, o.MaxText, o.MaxTime))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if o.MaxLag == 0 {
		o.MaxLag = 30 * time.Second
	}
	if o.MaxLinks == 0 {
		o.MaxLinks = 10_000
	}
	if o.MaxText == 0 {
		o.MaxText = 1 << 20
	}
	if o.MaxTime == 0 {
		o.MaxTime = 10 * time.Second
	}
	langs, err := newTongues()
	if err != nil {
		return nil, err
	}
	return &Source{o, langs}, nil
}

// Name is "web".
func (s *Source) Name() string { return "web" }

// Handles says whether k is a page.
func (s *Source) Handles(k partition.Key) bool { return k.Kind() == partition.KindPage }

// Fetch is of crawler.Source.
func (s *Source) Fetch(ctx context.Context, t fetch.Task) (fetch.Result, error) {
	res := fetch.Result{Site: t.Site}
	addr := t.Due.Key.URL()
	u, err := url.Parse(addr)
	if err != nil || u.Host == "" {
		return refuse(res, "address", "not an address"), nil
	}
	if err := s.o.Client.NeedsContact(u.Hostname()); err != nil {
		res = refuse(res, fetch.Stop(err), fetch.Reason(err))
		res.Next.At = t.Now.Add(contactAgain) // the next start may have one
		return res, nil
	}
	origin := u.Scheme + "://" + u.Host
	if ok, err := s.robots(ctx, t, origin, &res); !ok || err != nil {
		return res, err
	}
	if !fetch.Allowed(res.Site.Robots[origin], addr) {
		return refuse(res, "robots", "robots"), nil
	}
	var gateErr error
	resp, err := s.o.Client.Get(ctx, fetch.Request{
		URL: addr, ETag: t.Due.ETag, Modified: t.Due.Modified, Accept: accept, Want: wanted,
	}, func(ctx context.Context) error {
		if gateErr = t.Gate(ctx); gateErr == nil {
			res.Reqs++
		}
		return gateErr
	})
	if gateErr != nil {
		return res, gateErr
	}
	if err != nil {
		return s.failed(ctx, t, origin, res, resp, err)
	}
	res.Bytes, res.Asked, res.Slow = resp.Bytes, resp.Asked, resp.Elapsed
	return s.answered(t, res, resp), nil
}

// contactAgain is when a Key that was refused for want of a contact is looked at again.
const contactAgain = time.Hour

const accept = "text/html,application/xhtml+xml,text/plain;q=0.9,*/*;q=0.5"

// wanted says whether the body of an answer is of use.
func wanted(status int, h http.Header) bool {
	if status < 200 || status > 299 {
		return false
	}
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err != nil || kind == "" || hasText(kind) || isXML(kind)
}

func hasText(kind string) bool {
	return kind == "text/html" || kind == "application/xhtml+xml" || kind == "text/plain"
}

func refuse(res fetch.Result, stop, reason string) fetch.Result {
	res.Stop = stop
	res.Next = store.Next{State: store.StateRefused, Reason: reason}
	return res
}

// failed is the result of a request without a whole answer.
func (s *Source) failed(ctx context.Context, t fetch.Task, origin string, res fetch.Result, resp *fetch.Response, err error) (fetch.Result, error) {
	if ctx.Err() != nil {
		return res, ctx.Err()
	}
	var busy *fetch.BusyError
	if errors.As(err, &busy) {
		res.Again, res.Site.NextAllowed = true, busy.Until
		return res, nil
	}
	res.Stop = fetch.Stop(err)
	if fetch.Final(err) {
		res.Next = store.Next{State: store.StateRefused, Reason: fetch.Reason(err)}
		return res, nil
	}
	res.Next = s.o.Retry.Again(t.Due, t.Now, fetch.Reason(err))
	if resp != nil { // the site is there, this answer was broken
		res.Bytes, res.Asked, res.Slow = resp.Bytes, resp.Asked, resp.Elapsed
		return res, nil
	}
	s.o.Retry.Failed(&res.Site, t.Now)
	if s.o.Retry.Down(res.Site) { // let robots.txt tell whether it is the site or this page
		res.Site.Robots = without(res.Site.Robots, origin)
	}
	return res, nil
}

// answered is the result of a whole answer.
func (s *Source) answered(t fetch.Task, res fetch.Result, resp *fetch.Response) fetch.Result {
	status := resp.Status
	switch {
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		s.o.Retry.Slowed(&res.Site, t.Now, resp.Header.Get("Retry-After"))
		res.Next = s.o.Retry.Again(t.Due, t.Now, fmt.Sprintf("status %d", status))
		if res.Next.State == store.StatePending && res.Next.At.Before(res.Site.NextAllowed) {
			res.Next.At = res.Site.NextAllowed
		}
		res.Stop = "slowed"
		return res
	case status >= 500:
		res.Next = s.o.Retry.Again(t.Due, t.Now, fmt.Sprintf("status %d", status))
		res.Stop = "status"
		return res
	}
	s.o.Retry.Answered(&res.Site)
	res.Site.Fetched++
	switch {
	case status == http.StatusNotFound || status == http.StatusGone:
		res.Next = store.Next{State: store.StateGone, Reason: fmt.Sprintf("status %d", status)}
	case status >= 400:
		return refuse(res, "status", fmt.Sprintf("status %d", status))
	case status == http.StatusNotModified:
		res.Next = store.Next{State: store.StateDone}
	case status >= 300:
		s.redirect(t, &res, resp)
	default:
		s.page(t, &res, resp)
	}
	return res
}

// redirect records where t points to and asks that it be crawled.
func (s *Source) redirect(t fetch.Task, res *fetch.Result, resp *fetch.Response) {
	base, err := partition.NewBase(t.Due.Key.URL())
	var to partition.Key
	if err == nil {
		to, err = base.Resolve(resp.Header.Get("Location"))
	}
	if err != nil || resp.Header.Get("Location") == "" {
		*res = refuse(*res, "redirect", fmt.Sprintf("status %d without a usable Location", resp.Status))
		return
	}
	res.Record = s.record(t, resp)
	res.Record.Redirect = to
	res.Next = store.Next{State: store.StateDone}
	if to == t.Due.Key { // differs in the fragment at most
		*res = refuse(*res, "redirect", "redirects to itself")
		res.Record = nil
		return
	}
	res.Links = []store.Link{{Key: to, Rel: "redirect"}}
}

// page records what a 2xx says.
func (s *Source) page(t fetch.Task, res *fetch.Result, resp *fetch.Response) {
	rec := s.record(t, resp)
	res.Next = store.Next{State: store.StateDone}
	res.Stop = resp.Truncated
	if resp.Truncated != "" {
		res.Next.Reason = "cut off at " + resp.Truncated
	}
	res.Record = rec
	if resp.Unread {
		return
	}
	sum := sha256.Sum256(resp.Body)
	rec.Digest = "sha256:" + hex.EncodeToString(sum[:])
	if rec.MediaType == "" {
		rec.MediaType, _, _ = mime.ParseMediaType(http.DetectContentType(resp.Body)) // its own answers parse
	}
	read := extract
	if isXML(rec.MediaType) {
		read = extractXML
	} else if !hasText(rec.MediaType) {
		return
	}
	p, err := read(input{
		body: resp.Body, contentType: resp.Header.Get("Content-Type"), mediaType: rec.MediaType, url: t.Due.Key.URL(),
		maxText: s.o.MaxText, maxLinks: s.o.MaxLinks, maxTime: s.o.MaxTime, langs: s.langs,
	})
	if err != nil { // the parser gave up: what is known is kept, without text
		res.Stop, res.Next.Reason = "extract", fetch.Reason(err)
		return
	}
	if p.stop != "" {
		res.Stop, res.Next.Reason = p.stop, "cut off at "+p.stop
	}
	d := p.robots.with(headerDirectives(resp.Header.Values("X-Robots-Tag")))
	rec.NoIndex = d.noIndex
	rec.Title, rec.Lang, rec.PublishedAt, rec.Links = p.title, p.lang, p.published, p.links
	if d.noFollow {
		for i := range rec.Links {
			rec.Links[i].NoFollow = true
		}
	}
	if !d.noIndex {
		rec.Text = p.text
	} else {
		rec.Title = ""
		res.Stop = "noindex"
	}
	res.Links = rec.Links
}

func (s *Source) record(t fetch.Task, resp *fetch.Response) *store.Record {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		kind = ""
	}
	return &store.Record{
		V: store.RecordVersion, Key: t.Due.Key, Kind: "page", URL: t.Due.Key.URL(), FetchedAt: t.Now.UTC(), Source: s.Name(),
		Status: resp.Status, ETag: headerText(resp.Header, "ETag"), Modified: headerText(resp.Header, "Last-Modified"), MediaType: kind,
	}
}

// maxHeaderText is the longest header value that is kept.
const maxHeaderText = 1 << 10

func headerText(h http.Header, name string) string {
	v := h.Get(name)
	if len(v) > maxHeaderText {
		return "" // cut, it would never match again
	}
	return strings.ToValidUTF8(v, "\uFFFD")
}
