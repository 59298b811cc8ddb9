package service

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

// Decoding is tolerant: an id may be a number, a count a string, a flag or a list null, and a field
// missing or of another shape. An unreadable field counts as missing. A response is Misshapen only
// if it is not an object, or not a list, as requested. None of these types returns an error.

// Text is a string, or a number as it is written; anything else becomes "".
type Text string

// UnmarshalJSON decodes a string or a number; it never returns an error.
func (t *Text) UnmarshalJSON(b []byte) error {
	var s string
	switch {
	case len(b) == 0:
	case b[0] == '"':
		_ = json.Unmarshal(b, &s) // b is a valid string
	case b[0] == '-' || b[0] >= '0' && b[0] <= '9':
		s = string(b)
	}
	*t = Text(s)
	return nil
}

// Said is yes, no, or unknown.
type Said uint8

// The values of Said.
const (
	Unsaid Said = iota
	No
	Yes
)

// String returns "", "no" or "yes".
func (s Said) String() string { return [...]string{"", "no", "yes"}[min(s, Yes)] }

// Flag decodes a Said: true, "true" and 1 are yes.
type Flag struct{ Said }

// UnmarshalJSON decodes a flag; anything else becomes Unsaid. It never returns an error.
func (f *Flag) UnmarshalJSON(b []byte) error {
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

// Count is a number of things, -1 = unknown. The field stores one more, so that a missing field
// means unknown.
type Count struct{ more int64 }

// N returns the number, -1 = unknown.
func (c Count) N() int64 { return c.more - 1 }

// UnmarshalJSON decodes a number from 0 to 10¹⁵, also in a string. It never returns an error.
func (c *Count) UnmarshalJSON(b []byte) error {
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

// Stamp is a time in RFC 3339, or a day. Anything else, and a time outside the years 1970 to 9999,
// becomes zero.
type Stamp struct{ time.Time }

// UnmarshalJSON decodes a time; it never returns an error.
func (s *Stamp) UnmarshalJSON(b []byte) error {
	var word Text
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

// List is a JSON array of at most MaxList elements. null, an object and anything else become an
// empty list. Elements that do not have T's shape are left out.
type List[T any] struct {
	All  []T
	Raw  []json.RawMessage // of each element of All
	Is   bool              // the value was an array
	Bad  int               // elements left out because of their shape
	More bool              // there were more than MaxList
}

// MaxList is the most elements read of one array; no page has so many.
const MaxList = 2000

// UnmarshalJSON decodes an array; it never returns an error.
func (l *List[T]) UnmarshalJSON(b []byte) error {
	*l = List[T]{}
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil
	}
	l.Is = true
	for d.More() {
		if len(l.All)+l.Bad >= MaxList {
			l.More = true
			return nil
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil
		}
		var v T
		if !Decoded(json.Unmarshal(raw, &v)) || string(raw) == "null" {
			l.Bad++
			continue
		}
		l.All, l.Raw = append(l.All, v), append(l.Raw, raw)
	}
	return nil
}

// Object reports whether b is a JSON object. Types that decode through a pointer use it, so that
// another value does not become an empty object.
func Object(b []byte) bool { return len(b) > 0 && b[0] == '{' }

// Decoded reports whether a response was decoded. encoding/json leaves out a field of another shape
// and decodes the rest.
func Decoded(err error) bool {
	var shape *json.UnmarshalTypeError
	return err == nil || errors.As(err, &shape) && shape.Field != ""
}

// Limits of the stored values.
const (
	MaxName    = 256     // bytes of a name
	MaxAddress = 2 << 10 // bytes of a URL; longer ones are left out
	MaxID      = 512     // bytes of an id; longer ones are left out
)

// Line returns s as one line without control characters, at most max bytes.
func Line(s string, max int) string {
	s = Clip(s, 4*max)
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	return Clip(strings.Join(strings.Fields(s), " "), max)
}

// Clip cuts s to at most max bytes, at a character boundary.
func Clip(s string, max int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

// Ident returns t if it can be an id, else "".
func Ident(t Text) string {
	s := string(t)
	if len(s) > MaxID || strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r == utf8.RuneError ||
			unicode.IsControl(r)
	}) {
		return ""
	}
	return s
}

// Address returns t if it is an http or https URL, else "".
func Address(t Text) string {
	s := string(t)
	if len(s) > MaxAddress || !strings.HasPrefix(s, "https://") && !strings.HasPrefix(s, "http://") ||
		strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return ""
	}
	return s
}

// Raw returns the server's own object in compact form, or nil if it has more than max bytes. If max
// is below 0, Raw always returns nil.
func Raw(b []byte, max int) json.RawMessage {
	if max < 0 {
		return nil
	}
	var out bytes.Buffer
	if json.Compact(&out, b) != nil || out.Len() > max {
		return nil
	}
	return out.Bytes()
}
