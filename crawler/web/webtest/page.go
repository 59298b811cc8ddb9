package webtest

// Page is a response of a server.
type Page struct {
	Shape string // how it was made
	URL   string
	Type  string // the header Content-Type
	Body  []byte
}

const (
	typeHTML = "text/html"
	typeText = "text/plain"
	typeXML  = "application/xml"
	typeJSON = "application/feed+json"
)

// at returns an address where a page of this type may be.
func at(kind string) string {
	switch kind {
	case typeText:
		return "https://example.org/dir/page.txt"
	case typeXML:
		return "https://example.org/dir/feed.xml"
	}
	return "https://example.org/dir/page"
}
