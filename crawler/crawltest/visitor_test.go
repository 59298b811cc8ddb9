package crawltest_test

import (
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
)

// visitor is a small, slow and correct crawler. It shares no code with the world or with the
// project's crawler, so it can check both.
type visitor struct {
	t      *testing.T
	client *http.Client
	allow  netip.Prefix
	robots map[string]string // by origin
	titles map[string]string // by URL, of pages that were fetched
	rude   bool              // ignores robots.txt and nofollow
	limit  int               // maximum number of pages, 0 = no limit
}

func newVisitor(t *testing.T, rt http.RoundTripper, allow netip.Prefix) *visitor {
	return &visitor{t: t, allow: allow, robots: map[string]string{}, titles: map[string]string{},
		client: &http.Client{Transport: rt,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// crawl fetches everything that is reachable from the seeds and returns the URLs in order.
func (v *visitor) crawl(seeds []string) []string {
	var done []string
	seen, queue := map[string]bool{}, append([]string(nil), seeds...)
	for len(queue) > 0 && (v.limit == 0 || len(done) < v.limit) {
		at := queue[0]
		queue = queue[1:]
		if seen[at] || !v.reachable(at) || !v.allowed(at) {
			continue
		}
		seen[at] = true
		done = append(done, at)
		queue = append(queue, v.fetch(at)...)
	}
	return done
}

func (v *visitor) reachable(at string) bool {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "http" {
		return false
	}
	if strings.HasSuffix(u.Hostname(), ".test") {
		return true
	}
	a, err := netip.ParseAddr(u.Hostname())
	return err == nil && v.allow.Contains(a)
}

func (v *visitor) allowed(at string) bool {
	if v.rude {
		return true
	}
	u, _ := url.Parse(at)
	origin := "http://" + u.Host
	text, ok := v.robots[origin]
	if !ok {
		status, _, body := v.get(origin + "/robots.txt")
		if status == http.StatusOK {
			text = body
		}
		v.robots[origin] = text
	}
	path := strings.TrimPrefix(at, origin)
	// the last group of the world's robots.txt; it has only plain prefixes
	_, text, _ = strings.Cut(text, "User-agent: *\n")
	for line := range strings.Lines(text) {
		if prefix, ok := strings.CutPrefix(strings.TrimSpace(line), "Disallow: "); ok &&
			strings.HasPrefix(path, prefix) {
			return false
		}
	}
	return true
}

func (v *visitor) get(at string) (int, http.Header, string) {
	resp, err := v.client.Get(at)
	if err != nil {
		v.t.Fatalf("get %s: %v", at, err)
	}
	defer resp.Body.Close()
	r, err := charset.NewReader(resp.Body, resp.Header.Get("Content-Type"))
	if err != nil && err != io.EOF {
		v.t.Fatal(err)
	}
	if r == nil {
		return resp.StatusCode, resp.Header, ""
	}
	body, err := io.ReadAll(r)
	if err != nil {
		v.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(body)
}

func (v *visitor) fetch(at string) []string {
	status, header, body := v.get(at)
	base, _ := url.Parse(at)
	resolve := func(ref string) string {
		u, err := base.Parse(strings.TrimSpace(ref))
		if err != nil {
			return ""
		}
		u.Fragment, u.Host = "", strings.ToLower(u.Host)
		return u.String()
	}
	if loc := header.Get("Location"); loc != "" {
		return []string{resolve(loc)}
	}
	if status != http.StatusOK {
		return nil
	}
	doc, err := html.Parse(strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	var links []string
	noFollow := false
	for n := range doc.Descendants() {
		switch {
		case n.Data == "title" && n.FirstChild != nil:
			v.titles[at] = n.FirstChild.Data
		case n.Data == "meta" && strings.EqualFold(attr(n, "name"), "robots"):
			noFollow = noFollow || strings.Contains(strings.ToLower(attr(n, "content")), "nofollow")
		case n.Data == "a" && (v.rude || !strings.Contains(strings.ToLower(attr(n, "rel")), "nofollow")):
			links = append(links, resolve(attr(n, "href")))
		}
	}
	if noFollow && !v.rude {
		return nil
	}
	return links
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}
