package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition/strictjson"
)

// Mark is how far a timeline has been read, including a reading in progress. The zero value has
// read nothing. It is a value: a reading changes its own copy.
type Mark struct {
	V int `json:"v"`
	// Recent are the newest posts read, newest first, at most MaxRecent. There are several because
	// any of them may be deleted. Also, a server may show a post after one with a later id.
	Recent []Seen `json:"recent,omitempty"`
	// Base is Recent at the start of the present reading upward. If the server turns out to ignore
	// its parameters, the feed is read without a gap only up to Base.
	Base []Seen `json:"base,omitempty"`
	Walk *Walk  `json:"walk,omitempty"` // a reading downward in progress, nil = none
	From string `json:"from,omitempty"` // id below the next page of a reading upward
	// most posts in a page of a reading upward: a shorter page is the last
	Wide int `json:"wide,omitempty"`
}

// Seen is a post that was read, and the time when it was created.
type Seen struct {
	ID string    `json:"id"`
	At time.Time `json:"at,omitzero"`
	// Version distinguishes versions of the post, "" = the service has none.
	Version string `json:"version,omitempty"`
}

// Walk is a reading downward in progress, from the newest post to Base. Recent changes only when
// the walk reaches Base, because the posts in between are not read yet.
type Walk struct {
	Base []Seen `json:"base,omitempty"` // Recent at the start of the walk
	Top  []Seen `json:"top,omitempty"`  // the next value of Recent
	Pins []Seen `json:"pins,omitempty"` // posts out of order, which appear again at their place
	// Under is the creation time of the post above the next page, zero = not known.
	Under time.Time `json:"under,omitzero"`
	Trail Trail     `json:"trail"`
	// the lowest post read, in a walk by the service's own cursors
	Last Seen `json:"last,omitzero"`
	// the service's own cursors failed; the walk uses Feed.Below
	Other bool `json:"other,omitempty"`
}

// Limits of a Mark.
const (
	MarkVersion = 1
	MaxRecent   = 60        // posts in each list
	maxMark     = 256 << 10 // bytes of a Mark
)

// Encode returns m as bytes.
func (m Mark) Encode() []byte {
	m.V = MarkVersion
	b, err := json.Marshal(m)
	if err != nil {
		// cannot happen: plain fields; times come from DecodeMark or Stamp
		panic(fmt.Sprintf("service: mark: %v", err))
	}
	return b
}

// DecodeMark decodes the output of Encode. Empty input returns the zero Mark.
func DecodeMark(b []byte) (Mark, error) {
	if len(b) == 0 {
		return Mark{}, nil
	}
	var m Mark
	if len(b) > maxMark {
		return Mark{}, fmt.Errorf("service: mark: %d bytes, at most %d", len(b), maxMark)
	}
	if err := strictjson.Unmarshal(b, &m); err != nil {
		return Mark{}, fmt.Errorf("service: mark: %w", err)
	}
	if err := m.Valid(); err != nil {
		return Mark{}, fmt.Errorf("service: mark: %w", err)
	}
	return m, nil
}

// Valid returns an error if this package cannot have written m.
func (m Mark) Valid() error {
	lists := [][]Seen{m.Recent, m.Base}
	if m.Wide < 0 || len(m.From) > MaxCursor {
		return fmt.Errorf("pages of %d, above %.100q", m.Wide, m.From)
	}
	if m.V != MarkVersion {
		return fmt.Errorf("version %d, want %d", m.V, MarkVersion)
	}
	if w := m.Walk; w != nil {
		if err := w.Trail.Valid(); err != nil {
			return err
		}
		lists = append(lists, w.Base, w.Top, w.Pins)
	}
	for _, l := range lists {
		if len(l) > MaxRecent {
			return fmt.Errorf("%d ids, at most %d", len(l), MaxRecent)
		}
		for _, s := range l {
			if s.ID == "" || len(s.ID) > MaxID || len(s.Version) > MaxID {
				return errors.New("not an id")
			}
		}
	}
	return nil
}

// Foremost returns posts (newest first) followed by had, each id once.
func Foremost(posts, had []Seen) []Seen {
	out := make([]Seen, 0, MaxRecent)
	for _, s := range slices.Concat(posts, had) {
		if len(out) < MaxRecent && !Has(out, s.ID) {
			out = append(out, s)
		}
	}
	return out
}

// Renewed returns the posts to remember after a reading that found posts, newest first. A post that
// was not found keeps its place in front of the next older one, so the next reading can miss it
// too.
func Renewed(posts, had []Seen) []Seen {
	out := Foremost(posts, nil)
	at := len(out)
	for _, s := range slices.Backward(had) {
		if i := slices.IndexFunc(out, func(o Seen) bool { return o.ID == s.ID }); i >= 0 {
			at = i
			continue
		}
		out = slices.Insert(out, at, s)
	}
	return out[:min(len(out), MaxRecent)]
}

// Has reports whether one of posts has that id.
func Has(posts []Seen, id string) bool {
	return slices.ContainsFunc(posts, func(s Seen) bool { return s.ID == id })
}

// Span returns the earliest and the latest creation time of posts, zero = not known.
func Span(posts []Seen) (first, last time.Time) {
	for _, s := range posts {
		if s.At.IsZero() {
			continue
		}
		if first.IsZero() || s.At.Before(first) {
			first = s.At
		}
		if s.At.After(last) {
			last = s.At
		}
	}
	return first, last
}
