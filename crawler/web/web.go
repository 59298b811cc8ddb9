package web

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/geo"
	"github.com/echo-node/echo-node/store"
)

// Options are the options of New. A limit of zero means its default.
type Options struct {
	Client     *fetch.Client // required
	Retry      fetch.Retry
	MaxLag     time.Duration // longest Crawl-delay; a slower site is skipped; default 30 s
	MaxLinks   int           // links kept of one page, default 10,000
	MaxEntries int           // entries followed of one sitemap, default 50,000 (the maximum)
	MaxText    int           // bytes of text kept of one page, default 1 MiB
	MaxTime    time.Duration // limit of one extraction, default 10 s
	Keep       bool          // give requests, responses and bodies to the store, for export
	// MaxFile makes the Source fetch the files of accounts, each up to MaxFile bytes. It is at most
	// the constant MaxFile. 0 means no files.
	MaxFile int64
	// Unjudged leaves out what a page is judged to be: its place, its period and its fingerprint.
	// It is for a caller that only fetches and stores; a peer judges.
	Unjudged bool
	// Places is called for the first page that declares a place, and may be called more often. The
	// default opens the gazetteer once.
	Places func() (*geo.Gazetteer, error)
}

// Source fetches page Keys. Safe for concurrent use.
type Source struct {
	o     Options
	langs *tongues
}

// New returns a Source. The error lists all faults of o at once.
func New(o Options) (*Source, error) {
	var errs []error
	if o.Client == nil {
		errs = append(errs, errors.New("web: no client"))
	}
	if o.MaxLag < 0 || o.MaxLinks < 0 || o.MaxEntries < 0 || o.MaxText < 0 || o.MaxTime < 0 {
		errs = append(errs, fmt.Errorf("web: negative limit: MaxLag %v, MaxLinks %d, MaxEntries %d, MaxText %d, MaxTime %v", o.MaxLag, o.MaxLinks, o.MaxEntries, o.MaxText, o.MaxTime))
	}
	if o.MaxFile < 0 || o.MaxFile > MaxFile {
		errs = append(errs, fmt.Errorf("web: files of up to %d bytes: 0 to %d", o.MaxFile, MaxFile))
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
	if o.MaxEntries == 0 {
		o.MaxEntries = 50_000
	}
	if o.MaxText == 0 {
		o.MaxText = 1 << 20
	}
	if o.MaxTime == 0 {
		o.MaxTime = 10 * time.Second
	}
	if o.Places == nil {
		o.Places = sync.OnceValues(geo.Open)
	}
	langs, err := newTongues()
	if err != nil {
		return nil, err
	}
	return &Source{o, langs}, nil
}

// Name returns "web".
func (s *Source) Name() string { return "web" }

// Handles reports whether k is a page or a file of an account.
func (s *Source) Handles(k partition.Key) bool {
	return k.Kind() == partition.KindPage || k.Kind() == partition.KindFile
}

// Fetch implements crawler.Source. If a file of an account is not fetched, the result also has a
// gap for the account (missedFile).
func (s *Source) Fetch(ctx context.Context, t fetch.Task) (fetch.Result, error) {
	res, err := s.ask(ctx, t)
	if err == nil && t.Due.Key.Kind() == partition.KindFile {
		missedFile(t, &res)
	}
	return res, err
}

// ask is Fetch without the gaps that Fetch adds for files.
func (s *Source) ask(ctx context.Context, t fetch.Task) (fetch.Result, error) {
	file := t.Due.Key.Kind() == partition.KindFile
	res := fetch.Result{Site: t.Site, Planned: file}
	if file && s.o.MaxFile == 0 { // a peer that does fetch files admitted it
		res.Next = store.Next{State: store.StateDone, At: t.Now.Add(fileAgain),
			Reason: "this peer fetches no files of accounts"}
		return res, nil
	}
	addr := t.Due.Key.URL()
	u, err := url.Parse(addr)
	if err != nil || u.Host == "" {
		return refuse(res, "address", "not an address"), nil
	}
	for _, err := range []error{s.o.Client.PortOf(u), s.o.Client.NeedsContact(u.Hostname())} {
		if err != nil {
			res = refuse(res, fetch.Stop(err), fetch.Reason(err))
			res.Next.At = t.Now.Add(contactAgain) // the next start may change that
			return res, nil
		}
	}
	origin := u.Scheme + "://" + u.Host
	if ok, err := s.robots(ctx, t, origin, &res); !ok || err != nil {
		return res, err
	}
	if ok, over := fetch.Judge(res.Site.Robots[origin], addr); over != nil {
		return refuse(res, over.Name, "robots: "+over.Error()), nil
	} else if !ok {
		return refuse(res, "robots", "robots"), nil
	}
	ask := fetch.Request{
		URL: addr, ETag: t.Due.ETag, Modified: t.Due.Modified, Accept: accept,
		Want: func(status int, h http.Header) bool {
			return wanted(status, h) || status == http.StatusOK && packed(u.Path)
		},
	}
	if file {
		ask = s.askFile(addr)
	}
	ask.Room = t.Room
	var gateErr error
	resp, err := s.o.Client.Get(ctx, ask, func(ctx context.Context) error {
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
	done, err := t.Judging(ctx, MaxMemory(len(resp.Body)))
	if err != nil {
		return res, err
	}
	defer done()
	return s.answered(t, res, resp), nil
}

// contactAgain is the time after which a Key is tried again that was refused because no contact is
// set or its port is not allowed.
const contactAgain = time.Hour

// accept is the Accept header of requests for pages.
const accept = "text/html,application/xhtml+xml,text/plain;q=0.9,*/*;q=0.5"

// wanted reports whether the body of a response can be used.
func wanted(status int, h http.Header) bool {
	if status < 200 || status > 299 {
		return false
	}
	kind, _, err := mime.ParseMediaType(contentType(h))
	return err != nil || kind == "" || hasText(kind) || isXML(kind)
}

// hasText reports whether a media type is that of an HTML or plain text page.
func hasText(kind string) bool {
	return kind == "text/html" || kind == "application/xhtml+xml" || kind == "text/plain"
}

// refuse returns res with the state refused.
func refuse(res fetch.Result, stop, reason string) fetch.Result {
	res.Stop = stop
	res.Next = store.Next{State: store.StateRefused, Reason: reason}
	return res
}

// failed returns the result of a request that brought no complete response.
func (s *Source) failed(ctx context.Context, t fetch.Task, origin string, res fetch.Result, resp *fetch.Response,
	err error) (fetch.Result, error) {
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
	if resp != nil { // the site responds, but this response was broken
		res.Bytes, res.Asked, res.Slow = resp.Bytes, resp.Asked, resp.Elapsed
		return res, nil
	}
	s.o.Retry.Failed(&res.Site, t.Now)
	if s.o.Retry.Down(res.Site) { // robots.txt then shows whether the site or only this page fails
		res.Site.Robots = without(res.Site.Robots, origin)
	}
	return res, nil
}

// answered returns the result of a complete response.
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
	case t.Due.Key.Kind() == partition.KindFile && status >= 300:
		s.movedFile(t, &res, resp)
	case t.Due.Key.Kind() == partition.KindFile:
		s.file(t, &res, resp)
	case status == http.StatusNotModified:
		res.Next = store.Next{State: store.StateDone}
		res.Capture = s.capture(resp)
		res.Capture.Revisit, res.Capture.At = store.NotModified, t.Now
	case status >= 300:
		s.redirect(t, &res, resp)
	default:
		s.page(t, &res, resp)
	}
	return res
}

// redirect records the target of the redirect and adds the target as a link, to be crawled.
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
	if to == t.Due.Key { // it differs only in the fragment
		*res = refuse(*res, "redirect", "redirects to itself")
		return
	}
	// If a site insists on a session, the crawler follows one redirect into the session. To other
	// pages it goes without the session.
	clean, named := withoutSession(to)
	switch was, had := withoutSession(t.Due.Key); {
	case named && clean != was:
		to = clean
	case named && had:
		*res = refuse(*res, "session", "redirects to itself with another session")
		return
	}
	res.Record, res.Capture = s.record(t, resp), s.capture(resp)
	res.Record.Redirect = to
	res.Next = store.Next{State: store.StateDone}
	res.Links = []store.Link{{Key: to, Rel: "redirect"}}
}

// page records what a 2xx response says.
func (s *Source) page(t fetch.Task, res *fetch.Result, resp *fetch.Response) {
	rec := s.record(t, resp)
	res.Next = store.Next{State: store.StateDone}
	res.Stop = resp.Truncated
	if resp.Truncated != "" {
		res.Next.Reason = "cut off at " + resp.Truncated
	}
	res.Record, res.Capture = rec, s.capture(resp)
	if resp.Unread {
		return
	}
	sum := sha256.Sum256(resp.Body)
	rec.Digest = "sha256:" + hex.EncodeToString(sum[:])
	if rec.MediaType == "" {
		// A type from DetectContentType always parses.
		rec.MediaType, _, _ = mime.ParseMediaType(http.DetectContentType(resp.Body))
	}
	in := input{
		body: resp.Body, contentType: contentType(resp.Header), mediaType: rec.MediaType, url: t.Due.Key.URL(),
		claim:   resp.Header.Get("Content-Language"),
		maxText: s.o.MaxText, maxLinks: s.o.MaxLinks, maxEntries: s.o.MaxEntries, maxTime: s.o.MaxTime, langs: s.langs,
	}
	p, err := readAs(in)
	if errors.Is(err, errNoReader) {
		return
	}
	if err != nil { // the parser failed: the record keeps what is known, without text
		res.Stop, res.Next.Reason = "extract", fetch.Reason(err)
		rec.NoArchive = true // the page could not say whether it may be archived
		return
	}
	switch { // the first limit that was hit is Stop; Reason names both
	case p.stop == "":
	case res.Stop == "":
		res.Stop, res.Next.Reason = p.stop, "cut off at "+p.stop
	default:
		res.Next.Reason += ", " + p.stop
	}
	d := p.robots.with(headerDirectives(resp.Header.Values("X-Robots-Tag")))
	rec.NoIndex, rec.NoArchive = d.noIndex, d.noArchive
	rec.Description, rec.Author = p.description, p.author
	if rec.Canonical = p.canonical; rec.Canonical == "" {
		rec.Canonical = canonical(in.url, "", canonicalHeader(resp.Header.Values("Link")))
	}
	rec.Title, rec.Lang, rec.PublishedAt, rec.Links, rec.Declared = p.title, p.lang, p.published, p.links, p.declared
	if rec.Merged() && res.Stop == "" {
		res.Stop = "canonical"
	}
	if d.noFollow {
		for i := range rec.Links {
			rec.Links[i].NoFollow = true
		}
	}
	if !d.noIndex {
		rec.Text = p.text
	} else {
		rec.Title, rec.Description, rec.Author = "", "", ""
		res.Stop = "noindex"
	}
	if !s.o.Unjudged {
		if err := s.judge(rec, p.spoken); err != nil { // the page is kept as it was parsed
			res.Stop, res.Next.Reason = "judge", fetch.Reason(err)
		}
	}
	res.Links = slices.Concat(rec.Links, p.more)
}

// errNoReader is the error for a media type that is not parsed.
var errNoReader = errors.New("web: neither text nor links")

// readAs parses in according to its media type and name.
func readAs(in input) (page, error) {
	if gzipped(in.body) {
		return packedSitemap(in)
	}
	switch {
	case in.mediaType == "text/plain" && plainSitemap(in.url):
		return listed(in, bufio.NewReaderSize(bytes.NewReader(in.body), 2*maxRef)), nil
	case isXML(in.mediaType), packed(pathOf(in.url)): // unpacked on the way
		return extractXML(in)
	case hasText(in.mediaType):
		return extract(in)
	}
	return page{}, errNoReader
}

// record returns the record of a response, with the fields that the headers give.
func (s *Source) record(t fetch.Task, resp *fetch.Response) *store.Record {
	kind, _, err := mime.ParseMediaType(contentType(resp.Header))
	if err != nil || len(kind) > maxMediaType {
		kind = ""
	}
	said := headerDirectives(resp.Header.Values("X-Robots-Tag"))
	what := store.KindPage
	if t.Due.Key.Kind() == partition.KindFile {
		what = store.KindMedia
	}
	return &store.Record{
		NoArchive: said.noArchive || said.noIndex, // until the page itself was parsed
		V:         store.RecordVersion, Key: t.Due.Key, Kind: what, URL: t.Due.Key.URL(), FetchedAt: t.Now.UTC(),
		Source: s.Name(),
		Status: resp.Status, ETag: headerText(resp.Header, "ETag"), Modified: headerText(resp.Header, "Last-Modified"),
		MediaType: kind,
	}
}

// capture returns what is kept of a request and its response.
func (s *Source) capture(resp *fetch.Response) *store.Capture {
	if !s.o.Keep {
		return &store.Capture{Status: resp.Status}
	}
	return resp.Capture()
}

const (
	maxHeaderText = 1 << 10       // bytes of a header value; a longer one counts as absent
	maxMediaType  = 127 + 1 + 127 // RFC 6838 section 4.2
)

// contentType returns the Content-Type of h, or "" when it is absent or longer than maxHeaderText.
func contentType(h http.Header) string {
	v := h.Get("Content-Type")
	if len(v) > maxHeaderText {
		return ""
	}
	return v
}

// headerText returns a header value as valid UTF-8, or "" when it is longer than maxHeaderText.
func headerText(h http.Header, name string) string {
	v := h.Get(name)
	if len(v) > maxHeaderText {
		return "" // a shortened value would never match again
	}
	return strings.ToValidUTF8(v, "\uFFFD")
}
