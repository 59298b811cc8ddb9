package mastodon

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// What servers send is read for what can be made of it: an id may be a number, a
// count a string, a flag or a list null, a field missing or of another shape. A field
// that cannot be read is as if it were not there; only an answer that is no
// object, or no list, where one was asked for is Misshapen. None of these fails.

// text is a string, or a number as it is written; anything else is "".
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	switch {
	case len(b) == 0:
	case b[0] == '"':
		_ = json.Unmarshal(b, &s) // b is a valid string
	case b[0] == '-' || b[0] >= '0' && b[0] <= '9':
		s = string(b)
	}
	*t = text(s)
	return nil
}

// Said is a yes, a no, or that nothing was said.
type Said uint8

// What may be said.
const (
	Unsaid Said = iota
	No
	Yes
)

// String is "", "no" or "yes".
func (s Said) String() string { return [...]string{"", "no", "yes"}[min(s, Yes)] }

// flag is a Said: true, "true", 1 are yes.
type flag struct{ Said }

func (f *flag) UnmarshalJSON(b []byte) error {
	switch strings.ToLower(strings.Trim(string(b), `"`)) {
	case "true", "1":
		f.Said = Yes
	case "false", "0":
		f.Said = No
	default:
		f.Said = Unsaid
	}
	return nil
}

// count is a number of things, -1 = not said. It is kept one higher, so that a missing
// field is not said.
type count struct{ more int64 }

func (c count) n() int64 { return c.more - 1 }

func (c *count) UnmarshalJSON(b []byte) error {
	c.more = 0
	digits := strings.Trim(string(b), `"`)
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		f, ferr := strconv.ParseFloat(digits, 64)
		if ferr != nil || !(f >= 0 && f < 1e15) {
			return nil
		}
		n = int64(f)
	}
	if n >= 0 && n < 1e15 {
		c.more = n + 1
	}
	return nil
}

// stamp is a time in RFC 3339, or a day; anything else, and what lies outside
// the years 1970 to 9999, is zero.
type stamp struct{ time.Time }

func (s *stamp) UnmarshalJSON(b []byte) error {
	var word text
	_ = word.UnmarshalJSON(b) // never fails
	s.Time = time.Time{}
	for _, form := range [...]string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", time.DateOnly} {
		if t, err := time.Parse(form, string(word)); err == nil {
			if y := t.UTC().Year(); y >= 1970 && y <= 9999 {
				s.Time = t.UTC()
			}
			break
		}
	}
	return nil
}

// list is a JSON array of at most maxList elements; null, an object and anything
// else is an empty one. Elements that are not of T's shape are left out.
type list[T any] struct {
	all  []T
	raw  []json.RawMessage // of each of all
	is   bool              // it was an array
	bad  int               // elements left out for their shape
	more bool              // there were more than maxList
}

// maxList is the most elements that are read of one array; no page has as many.
const maxList = 2000

func (l *list[T]) UnmarshalJSON(b []byte) error {
	*l = list[T]{}
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil
	}
	l.is = true
	for d.More() {
		if len(l.all)+l.bad >= maxList {
			l.more = true
			return nil
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil
		}
		var v T
		if !decoded(json.Unmarshal(raw, &v)) || string(raw) == "null" {
			l.bad++
			continue
		}
		l.all, l.raw = append(l.all, v), append(l.raw, raw)
	}
	return nil
}

// object is what is behind a pointer of a wire type: an element that is no object
// must not pass for an empty one.
func object(b []byte) bool { return len(b) > 0 && b[0] == '{' }

// decoded says whether an answer was read: a field of another shape is left out
// by encoding/json, which reads the rest.
func decoded(err error) bool {
	var shape *json.UnmarshalTypeError
	return err == nil || errors.As(err, &shape) && shape.Field != ""
}

// Caps on what is kept of one object. What is longer is cut; lists are cut at
// their end.
const (
	maxName     = 256     // bytes of a name
	maxAddress  = 2 << 10 // bytes of an address; longer ones are left out
	maxID       = 512     // bytes of an id; longer ones are left out
	maxFields   = 32      // of a profile
	maxMentions = 256     // of a post
	maxTags     = 128     // of a post
	maxMedia    = 64      // of a post
	maxLinks    = 100     // of a post or a profile
)

// line is s as one line without control characters, at most max bytes.
func line(s string, max int) string {
	s = clip(s, 4*max)
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	return clip(strings.Join(strings.Fields(s), " "), max)
}

// clip cuts s to max bytes at the edge of a character.
func clip(s string, max int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

// ident is an id, "" when it cannot be one.
func ident(t text) string {
	s := string(t)
	if len(s) > maxID || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == utf8.RuneError || unicode.IsControl(r) }) {
		return ""
	}
	return s
}

// address is an http address, "" when it is none.
func address(t text) string {
	s := string(t)
	if len(s) > maxAddress || !strings.HasPrefix(s, "https://") && !strings.HasPrefix(s, "http://") || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return ""
	}
	return s
}

// raw is what is kept of the server's own object: compact, and whole or not at all.
func (c *Client) raw(b []byte) json.RawMessage {
	if c.o.MaxRaw < 0 {
		return nil
	}
	var out bytes.Buffer
	if json.Compact(&out, b) != nil || out.Len() > c.o.MaxRaw {
		return nil
	}
	return out.Bytes()
}
