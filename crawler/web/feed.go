package web

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mmcdole/gofeed"
	"github.com/mmcdole/gofeed/atom"
	"github.com/mmcdole/gofeed/rss"
)

// feedReader copies the parts that are used from an RSS or Atom feed, in one pass and within
// limits. These are the elements around the entries, and the titles, links, languages and dates of
// the feed and its entries, unchanged. Gofeed builds a tree and has no limits, so it gets only
// these parts (docs/decisions/0010-bounds-of-a-page.md).
type feedReader struct {
	x       *xmlReader
	out     bytes.Buffer
	names   []string // names of the open elements in out, as the feed writes them
	entries int
	most    int // maximum number of entries
	parts   int // number of parts of this entry, or of the feed outside its entries
	all     int // number of elements in out
	markup  int // bytes of the parts that gofeed parses as HTML
	dates   int
	atom    bool
	based   bool // a base is set; gofeed resolves links in titles against it
}

// newFeedReader returns a feedReader for at most most entries of body.
func newFeedReader(body []byte, most int) *feedReader {
	r := &feedReader{x: newXMLReader(printable{bytes.NewReader(body)}), most: most}
	r.x.bytes.keep = maxXMLTag
	return r
}

// read fills out. out stays empty when there is no feed.
func (r *feedReader) read(most time.Duration) error {
	begun := time.Now()
	for look := checkEvery; ; {
		if r.x.n >= look {
			look = r.x.n + checkEvery
			if time.Since(begun) > most {
				r.x.stop = stopTime
				break
			}
		}
		tok, err := r.x.next()
		if errors.Is(err, io.EOF) || err != nil && len(r.names) == 0 {
			break
		}
		if err != nil {
			return err
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			err = r.start(tok)
		case xml.EndElement:
			r.end()
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err != nil || len(r.names) == 0 && r.all > 0 {
			break
		}
	}
	for len(r.names) > 0 { // elements left open at a limit
		r.end()
	}
	return nil
}

// start handles the start of an element inside the last one in names. io.EOF ends the reading.
func (r *feedReader) start(e xml.StartElement) error {
	name := strings.ToLower(e.Name.Local)
	switch depth := len(r.names); {
	case depth == 0:
		if name != "rss" && name != "rdf" && name != "feed" {
			return io.EOF
		}
		r.atom = name == "feed"
		return r.open()
	case !r.atom && depth == 1 && name == "channel", !r.atom && depth <= 2 && name == "item" && r.inFeed(), r.atom &&
		depth == 1 && name == "entry":
		if name != "channel" {
			if r.entries++; r.entries > r.most {
				return r.x.hit(stopEntries)
			}
			r.parts = 0
		}
		return r.open()
	case (r.atom || depth > 1) && isPart(name):
		return r.part(name)
	}
	return r.skip()
}

// inFeed reports whether the open element is the root or the channel.
func (r *feedReader) inFeed() bool {
	name := r.names[len(r.names)-1]
	return len(r.names) == 1 || strings.EqualFold(name[strings.LastIndexByte(name, ':')+1:], "channel")
}

// isPart reports whether an element with this name, in lower case, may hold something that is used.
// Gofeed decides what it belongs to, and which of several counts.
func isPart(name string) bool {
	switch name {
	case "title", "link", "language", "pubdate", "lastbuilddate", "date", "published", "issued", "updated", "modified":
		return true
	}
	return false
}

func isDate(name string) bool { return name != "title" && name != "link" && name != "language" }

// open writes the last tag and enters its element.
func (r *feedReader) open() error {
	name, err := r.tag()
	if err != nil {
		return err
	}
	r.names = append(r.names, name)
	return nil
}

// tag writes the last tag as a start tag, even if it was self-closing.
func (r *feedReader) tag() (name string, err error) {
	tag := r.x.raw()
	if r.all++; r.all > maxFeedElements || r.out.Len()+len(tag) > maxFeed {
		return "", r.x.hit(stopFeed)
	}
	r.based = r.based || bytes.Contains(tag, []byte(":base"))
	tag = bytes.TrimSuffix(bytes.TrimSuffix(tag, []byte(">")), []byte("/"))
	r.out.Write(tag)
	r.out.WriteByte('>')
	end := bytes.IndexAny(tag, " \t\r\n")
	if end < 0 {
		end = len(tag)
	}
	return string(tag[1:end]), nil
}

// end closes the last element in names.
func (r *feedReader) end() {
	n := len(r.names) - 1
	if n < 0 {
		return
	}
	fmt.Fprintf(&r.out, "</%s>", r.names[n])
	r.names = r.names[:n]
	r.parts = 0
}

// part copies an element with its content, unless that is too much.
func (r *feedReader) part(name string) error {
	if r.parts++; r.parts > maxFeedParts {
		r.x.stop = stopFeed
		return r.skip()
	}
	if isDate(name) {
		if r.dates++; r.dates > maxFeedDates {
			r.x.stop = stopDates
			return r.skip()
		}
	}
	from, all := r.out.Len(), r.all
	open, err := r.tag()
	if err != nil {
		return err
	}
	inner, last, depth, short := r.out.Len(), -1, len(r.x.open), true
	for len(r.x.open) >= depth {
		tok, err := r.x.next()
		if err != nil {
			r.out.Truncate(from)
			return err
		}
		raw := r.x.raw()
		switch tok.(type) {
		case xml.StartElement:
			r.all++
		case xml.EndElement:
			if len(raw) > 0 { // otherwise the tag is missing, or it belongs to a <tag/>
				last = r.out.Len()
			}
		}
		if short = short && r.out.Len()-inner+len(raw) <= maxFeedPart; short {
			r.out.Write(raw)
		} else {
			r.x.bytes.keep = 0
		}
	}
	r.x.bytes.keep = maxXMLTag
	if last >= 0 {
		r.out.Truncate(last) // the end tag
	}
	if !short || !r.takes(name, r.out.Bytes()[from:inner], r.out.Bytes()[inner:]) {
		r.out.Truncate(from)
		r.all = all
		return nil
	}
	fmt.Fprintf(&r.out, "</%s>", open)
	return nil
}

// takes reports whether a part is within the limits. If not, stop may name the limit.
func (r *feedReader) takes(name string, tag, inner []byte) bool {
	if isDate(name) {
		return len(bytes.TrimSpace(inner)) <= maxFeedDate // a longer text is no date
	}
	html := bytes.Contains(bytes.ToLower(tag), []byte("html"))
	plain := bytes.Contains(inner, []byte("<![CDATA[")) || !bytes.Contains(inner, []byte("<"))
	if !html || plain && !r.based {
		return true
	}
	r.markup += len(inner)
	if len(inner) > maxFeedMarkup || r.markup > maxFeedMarkups {
		r.x.stop = stopFeed
		return false
	}
	return true
}

// skip reads to the end of the element that was just opened and drops it.
func (r *feedReader) skip() error {
	r.x.bytes.keep = 0
	for depth := len(r.x.open); len(r.x.open) >= depth; {
		if _, err := r.x.next(); err != nil {
			return err
		}
	}
	r.x.bytes.keep = maxXMLTag
	return nil
}

// feed lets gofeed parse the copied parts. It returns nil when there are none.
func (r *feedReader) feed() (*gofeed.Feed, error) {
	switch {
	case r.out.Len() == 0:
		return nil, nil
	case r.atom:
		f, err := (&atom.Parser{}).Parse(&r.out)
		if err != nil {
			return nil, err
		}
		return (&gofeed.DefaultAtomTranslator{}).Translate(f)
	}
	f, err := (&rss.Parser{}).Parse(&r.out)
	if err != nil {
		return nil, err
	}
	return (&gofeed.DefaultRSSTranslator{DisableContentImageScan: true}).Translate(f)
}
