package web

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/mmcdole/gofeed"
	jsonfeed "github.com/mmcdole/gofeed/json"
)

// A JSON feed is decoded entry by entry. Decoded as a whole, a feed of empty entries would take
// fifty times its size in memory.

var (
	errJSON  = errors.New("not the JSON of a feed")
	errDepth = errors.New("objects too deep in each other")
)

// jsonFeed parses the feed in text and at most most of its entries. The string is the limit that
// was hit.
func jsonFeed(text []byte, most int) (*gofeed.Feed, string, error) {
	var out jsonfeed.Feed
	c := jsonCursor{text: text}
	stop := ""
	err := c.object(func(name string) error {
		switch {
		case name == "items" && c.next() == '[':
			var err error
			stop, err = c.items(&out, most)
			return err
		case name == "title":
			return c.decode(&out.Title)
		case name == "home_page_url":
			return c.decode(&out.HomePageURL)
		case name == "language":
			return c.decode(&out.Language)
		}
		_, err := c.value()
		return err
	})
	switch {
	case errors.Is(err, errDepth):
		stop = stopJSONDepth
	case stop != "": // the rest was not read
	case err != nil:
		return nil, "", err
	case c.next() != 0:
		return nil, "", errJSON
	}
	f, err := (&gofeed.DefaultJSONTranslator{}).Translate(&out)
	return f, stop, err
}

// items parses the list of entries.
func (c *jsonCursor) items(out *jsonfeed.Feed, most int) (stop string, err error) {
	dates, size := 0, 0
	date := func(text string) string {
		if dates++; text == "" || len(text) > maxFeedDate || dates > maxFeedDates {
			return ""
		}
		return text
	}
	err = c.list(func() error {
		if len(out.Items) >= most {
			stop = stopEntries
			return errJSON
		}
		var it struct {
			URL, Title string
			Published  string `json:"date_published"`
			Modified   string `json:"date_modified"`
		}
		from := c.at
		if err := c.decode(&it); err != nil {
			return err
		}
		if c.at-from > maxJSONValue {
			stop = stopJSONValue
		}
		if size += len(it.URL) + len(it.Title); size > maxFeed {
			stop = stopFeed
			return errJSON
		}
		out.Items = append(out.Items, &jsonfeed.Item{
			URL: it.URL, Title: it.Title, DatePublished: date(it.Published), DateModified: date(it.Modified)})
		return nil
	})
	if stop == "" && dates > maxFeedDates {
		stop = stopDates
	}
	return stop, err
}

// jsonCursor walks through a JSON text without copying it.
type jsonCursor struct {
	text []byte
	at   int
}

// next returns the next byte that is not a space, without consuming it. It returns 0 at the end.
func (c *jsonCursor) next() byte {
	for ; c.at < len(c.text); c.at++ {
		switch b := c.text[c.at]; b {
		case ' ', '\t', '\r', '\n':
		default:
			return b
		}
	}
	return 0
}

// take consumes b. It returns an error if the next byte is another one.
func (c *jsonCursor) take(b byte) error {
	if c.next() != b {
		return errJSON
	}
	c.at++
	return nil
}

// object calls member for each member of an object. member consumes the value. The name is in lower
// case.
func (c *jsonCursor) object(member func(name string) error) error {
	return c.each('{', '}', func() error {
		raw, err := c.value()
		var name string
		if err != nil || len(raw) > maxXMLName || json.Unmarshal(raw, &name) != nil {
			return cmp.Or(err, errJSON)
		}
		if err := c.take(':'); err != nil {
			return err
		}
		return member(strings.ToLower(name))
	})
}

// list calls element for each element of a list. element consumes it.
func (c *jsonCursor) list(element func() error) error { return c.each('[', ']', element) }

// each calls one for each element between open and end, which commas separate.
func (c *jsonCursor) each(open, end byte, one func() error) error {
	if err := c.take(open); err != nil {
		return err
	}
	for first := true; c.next() != end; first = false {
		if !first {
			if err := c.take(','); err != nil {
				return err
			}
		}
		if err := one(); err != nil {
			return err
		}
	}
	c.at++
	return nil
}

// decode consumes a value and decodes it into v. A value longer than maxJSONValue, and a field of
// another type, count as absent.
func (c *jsonCursor) decode(v any) error {
	raw, err := c.value()
	if err != nil || len(raw) > maxJSONValue {
		return err
	}
	var shape *json.UnmarshalTypeError
	if err := json.Unmarshal(raw, v); err != nil && !errors.As(err, &shape) {
		return err
	}
	return nil
}

// value consumes a value and returns its bytes. It does not check the inside of the value; the
// decoder does.
func (c *jsonCursor) value() ([]byte, error) {
	c.next()
	from, depth := c.at, 0
	for c.at < len(c.text) {
		b := c.text[c.at]
		switch b {
		case '"':
			if !c.quoted() {
				return nil, errJSON
			}
		case '{', '[':
			if depth++; depth > maxJSONDepth {
				return nil, errDepth
			}
		case '}', ']':
			depth--
		}
		if depth < 0 || depth == 0 && (b <= ' ' || b == ',' || b == ':') {
			break // after a number, true, false, null
		}
		c.at++
		if depth == 0 && (b == '"' || b == '}' || b == ']') {
			break
		}
	}
	if depth > 0 || c.at == from {
		return nil, errJSON
	}
	return c.text[from:c.at], nil
}

// quoted moves to the closing quote of a string. It returns false when there is none.
func (c *jsonCursor) quoted() bool {
	for c.at++; c.at < len(c.text); c.at++ {
		switch c.text[c.at] {
		case '\\':
			c.at++
		case '"':
			return true
		}
	}
	return false
}
