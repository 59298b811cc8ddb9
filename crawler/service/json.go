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

// What servers send is read for what can be made of it: an id may be a number, a
// count a string, a flag or a list null, a field missing or of another shape. A field
// that cannot be read is as if it were not there; only an answer that is no
// object, or no list, where one was asked for is Misshapen. None of these fails.

// Text is a string, or a number as it is written; anything else is "".
type Text string

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

// Flag is a Said: true, "true", 1 are yes.
type Flag struct{ Said }

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

// Count is a number of things, -1 = not said. It is kept one higher, so that a missing
// field is not said.
type Count struct{ more int64 }

func (c Count) N() int64 { return c.more - 1 }

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

// Stamp is a time in RFC 3339, or a day; anything else, and what lies outside
// the years 1970 to 9999, is zero.
type Stamp struct{ time.Time }

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

// List is a JSON array of at most MaxList elements; null, an object and anything
// else is an empty one. Elements that are not of T's shape are left out.
type List[T any] struct {
	All  []T
	Raw  []json.RawMessage // of each of All
	Is   bool              // it was an array
	Bad  int               // elements left out for their shape
	More bool              // there were more than MaxList
}

// MaxList is the most elements that are read of one array; no page has as many.
const MaxList = 2000

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

// Object is what is behind a pointer of a wire type: an element that is no object
// must not pass for an empty one.
func Object(b []byte) bool { return len(b) > 0 && b[0] == '{' }

// Decoded says whether an answer was read: a field of another shape is left out
// by encoding/json, which reads the rest.
func Decoded(err error) bool {
	var shape *json.UnmarshalTypeError
	return err == nil || errors.As(err, &shape) && shape.Field != ""
}

// Caps on what is kept of one object.
const (
	MaxName    = 256     // bytes of a name
	MaxAddress = 2 << 10 // bytes of an address; longer ones are left out
	MaxID      = 512     // bytes of an id; longer ones are left out
)

// Line is s as one line without control characters, at most max bytes.
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

// Clip cuts s to max bytes at the edge of a character.
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

// Ident is an id, "" when it cannot be one.
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

// Address is an http address, "" when it is none.
func Address(t Text) string {
	s := string(t)
	if len(s) > MaxAddress || !strings.HasPrefix(s, "https://") && !strings.HasPrefix(s, "http://") ||
		strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return ""
	}
	return s
}

// Raw is what is kept of a server's own object: compact, and whole or not at all
// when it is over max bytes. max below 0 keeps nothing.
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
