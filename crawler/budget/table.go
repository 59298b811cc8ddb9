package budget

import (
	_ "embed" // the tables
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind is the way a server counts.
type Kind string

// The kinds; see the package comment.
const (
	Aligned  Kind = "aligned"
	Sliding  Kind = "sliding"
	Tokens   Kind = "tokens"
	Reported Kind = "told"
	Adaptive Kind = "adaptive"
)

// Unit is what a bucket counts.
type Unit string

// The units.
const (
	Calls Unit = "calls"
	Items Unit = "items"    // things in responses: posts, users
	Micro Unit = "microusd" // millionths of a US dollar
)

// Limits of accepted values.
const (
	MaxLimit    = 1_000_000_000_000    // of a bucket, in its unit
	MaxWindow   = 366 * 24 * time.Hour // of a bucket
	MaxReset    = 24 * time.Hour       // in the future, if the window is not known
	MaxPolicies = 8                    // buckets named by the headers of one response
	MaxHeader   = 1024                 // bytes read of one header
	MaxOpen     = 4096                 // calls in flight of one credential
	// MaxCredentials is the most credentials of a Book.
	MaxCredentials = 256
	maxLearned     = 8       // learned buckets of one credential
	maxName        = 64      // bytes of a name of a bucket, class or service
	maxEntries     = 256     // buckets or classes of a table
	maxTable       = 1 << 20 // bytes
)

// Month is the window of an aligned bucket that restarts on the first of each month, UTC.
const Month = "month"

// Span is a window's length in the text of a table: "15m0s", "24h", or "month". The value of
// "month" is -1.
type Span time.Duration

const month Span = -1

// UnmarshalText reads a duration as time.ParseDuration does, or Month.
func (s *Span) UnmarshalText(b []byte) error {
	if string(b) == Month {
		*s = month
		return nil
	}
	d, err := time.ParseDuration(string(b))
	*s = Span(d)
	return err
}

// MarshalText is the inverse of UnmarshalText.
func (s Span) MarshalText() ([]byte, error) {
	if s == month {
		return []byte(Month), nil
	}
	return []byte(time.Duration(s).String()), nil
}

// Spec is one bucket of a table.
type Spec struct {
	Name string `json:"name"` // unique in its table
	Kind Kind   `json:"kind"`
	// Limit is the limit of a window. For Tokens it is the capacity, refilled once per window; for
	// Adaptive it is the first guess. 0 is allowed for Micro only: nothing may be spent until the
	// operator sets a limit (Options.Limits). Reported has no limit.
	Limit int64 `json:"limit,omitempty"`
	// positive, at most MaxWindow; at least a minute for Aligned; none for Reported
	Window Span `json:"window,omitempty"`
	Unit   Unit `json:"unit,omitempty"` // default Calls
	// Shared says that the server counts by IP address, for all credentials together.
	Shared bool `json:"shared,omitempty"`
	// Spoken says that headers describe this bucket if no other has the limit or window in them.
	Spoken bool   `json:"spoken,omitempty"`
	Source string `json:"source,omitempty"` // where the numbers are from
}

// Class is a set of endpoints that count alike.
type Class struct {
	Name    string   `json:"name"`
	Buckets []string `json:"buckets"` // names of the buckets that a call counts in
	// Price is the charge, in Micro, for a call and for each item of its response.
	Price struct {
		Call int64 `json:"call,omitempty"`
		Item int64 `json:"item,omitempty"`
	} `json:"price,omitzero"`
}

// Table is what is known about a service before its first response.
type Table struct {
	Service string  `json:"service"`
	Buckets []Spec  `json:"buckets"`
	Classes []Class `json:"classes"`
}

// tables is the JSON of all built-in tables.
//
//go:embed tables.json
var tables []byte

// Default returns the built-in table of a service; ok is false if there is none. Services lists
// their names.
func Default(service string) (t Table, ok bool) {
	for _, t := range builtin() {
		if t.Service == service {
			return t, true
		}
	}
	return Table{}, false
}

// Services returns the names of the built-in tables.
func Services() []string {
	var names []string
	for _, t := range builtin() {
		names = append(names, t.Service)
	}
	return names
}

// builtin panics on an invalid table, which TestTables excludes.
func builtin() []Table {
	var all []Table
	if err := json.Unmarshal(tables, &all); err != nil {
		panic(err)
	}
	return all
}

// ParseTable reads a table from JSON, for instance an operator's own. The error joins every fault.
func ParseTable(b []byte) (Table, error) {
	var t Table
	if len(b) > maxTable {
		return t, fmt.Errorf("budget: table of %d bytes, at most %d", len(b), maxTable)
	}
	if err := json.Unmarshal(b, &t); err != nil {
		return Table{}, fmt.Errorf("budget: table: %w", err)
	}
	return t, t.Validate()
}

// Validate returns one error that joins every fault.
func (t *Table) Validate() error {
	var faults []error
	bad := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if !goodName(t.Service) {
		bad("service %q", clip(t.Service))
	}
	if len(t.Buckets) > maxEntries || len(t.Classes) > maxEntries {
		bad("%d buckets and %d classes, at most %d each", len(t.Buckets), len(t.Classes), maxEntries)
		return fmt.Errorf("budget: table: %w", errors.Join(faults...))
	}
	names := map[string]bool{}
	for i := range t.Buckets {
		s := &t.Buckets[i]
		if names[s.Name] {
			bad("bucket %q twice", s.Name)
		}
		names[s.Name] = true
		if err := s.validate(); err != nil {
			bad("bucket %q: %w", clip(s.Name), err)
		}
	}
	classes := map[string]bool{}
	for _, c := range t.Classes {
		if !goodName(c.Name) || classes[c.Name] {
			bad("class %q is nameless or there twice", clip(c.Name))
		}
		classes[c.Name] = true
		if c.Price.Call < 0 || c.Price.Item < 0 || max(c.Price.Call, c.Price.Item) > MaxLimit/MaxOpen {
			bad("class %q: price %d + %d an item", c.Name, c.Price.Call, c.Price.Item)
		}
		if len(c.Buckets) > maxEntries {
			bad("class %q: %d buckets", c.Name, len(c.Buckets))
			continue
		}
		for i, b := range c.Buckets {
			if !names[b] || slices.Contains(c.Buckets[:i], b) {
				bad("class %q: bucket %q is unknown or there twice", c.Name, clip(b))
			}
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("budget: table: %w", errors.Join(faults...))
	}
	return nil
}

// class returns the class of that name, nil if there is none.
func (t *Table) class(name string) *Class {
	for i := range t.Classes {
		if t.Classes[i].Name == name {
			return &t.Classes[i]
		}
	}
	return nil
}

// goodName reports whether s has only ASCII letters, digits and - . / _ : and begins with a letter
// or digit. Such names need no quoting in logs and metrics.
func goodName(s string) bool {
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("-./_:", rune(c))) {
			return false
		}
	}
	return s != "" && len(s) <= maxName
}

// clip returns at most maxName bytes of s, for error messages.
func clip(s string) string { return s[:min(len(s), maxName)] }

// validate returns one error that joins all faults of the spec.
func (s *Spec) validate() error {
	var faults []error
	bad := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if !goodName(s.Name) {
		bad("bad name")
	}
	if !slices.Contains([]Kind{Aligned, Sliding, Tokens, Reported, Adaptive}, s.Kind) {
		bad("kind %q", clip(string(s.Kind)))
	}
	if !slices.Contains([]Unit{"", Calls, Items, Micro}, s.Unit) {
		bad("unit %q", clip(string(s.Unit)))
	}
	if (s.Kind == Reported || s.Kind == Adaptive) && s.unit() != Calls {
		bad("%s counts calls only", s.Kind)
	}
	if s.Kind == Reported {
		if s.Limit != 0 || s.Window != 0 {
			bad("a limit or window, which only headers tell")
		}
		return errors.Join(faults...)
	}
	if s.Limit < 0 || s.Limit > MaxLimit || s.Limit == 0 && s.unit() != Micro {
		bad("limit %d", s.Limit)
	}
	switch w := time.Duration(s.Window); {
	case s.Window == month && s.Kind == Aligned:
	case w < time.Millisecond || w > MaxWindow:
		bad("window %s", w)
	case s.Kind == Aligned && w < time.Minute:
		bad("aligned window %s is under a minute", w)
	}
	return errors.Join(faults...)
}

// unit returns the unit with its default.
func (s *Spec) unit() Unit {
	if s.Unit == "" {
		return Calls
	}
	return s.Unit
}
