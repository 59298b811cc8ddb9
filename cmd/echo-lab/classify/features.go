package classify

import (
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// The dissertation's features of a page, in its order.
const (
	Links    = iota // out-links
	Emails          // links to e-mail addresses
	Modified        // 1 if there is a Last-Modified header, else 0
	Size            // bytes without markup
	Depth           // links from the root of the domain, which has depth 1
	Images          // images referenced
	Level           // directory level on the server; the host's root has level 1
	Features        // the number of features
)

// Vector is one page's features.
type Vector [Features]float64

// FeatureNames returns the features' names, in order.
func FeatureNames() []string {
	return []string{"links", "emails", "modified", "size", "depth", "images", "level"}
}

// Extract returns the features of a page from its HTML, its address, the presence of a
// Last-Modified header, and its depth in the crawl. It never fails: missing parts count as
// zero.
func Extract(document string, address *url.URL, modified bool, depth int) Vector {
	var v Vector
	v[Depth] = float64(depth)
	v[Level] = float64(URLLevel(address))
	if modified {
		v[Modified] = 1
	}
	z := html.NewTokenizer(strings.NewReader(document))
	for hidden := ""; ; {
		switch z.Next() {
		case html.ErrorToken:
			return v
		case html.TextToken:
			if hidden == "" {
				v[Size] += float64(len(z.Raw()))
			}
		case html.EndTagToken:
			if name, _ := z.TagName(); string(name) == hidden {
				hidden = ""
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			if t.Type == html.StartTagToken && (t.Data == "script" || t.Data == "style") {
				hidden = t.Data
			}
			v.tag(t)
		}
	}
}

func (v *Vector) tag(t html.Token) {
	switch t.Data {
	case "img":
		v[Images]++
	case "a", "area":
		for _, a := range t.Attr {
			if a.Key != "href" {
				continue
			}
			if strings.HasPrefix(strings.ToLower(strings.TrimSpace(a.Val)), "mailto:") {
				v[Emails]++
			} else {
				v[Links]++
			}
			return
		}
	}
}

// URLLevel returns the directory level: 1 for the host's root and what is in it, 2 for /~lab,
// and so on. A last segment with a dot is a file, not a directory.
func URLLevel(u *url.URL) int {
	if u == nil {
		return 1
	}
	level := 1
	segments := strings.Split(strings.Trim(u.Path, "/"), "/")
	for i, s := range segments {
		if s == "" || i == len(segments)-1 && strings.Contains(s, ".") {
			continue
		}
		level++
	}
	return level
}
