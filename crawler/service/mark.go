package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition/strictjson"
)

// Mark is how far a timeline has been read, and where a reading of it stands. The
// zero value has read nothing. It is a value: a reading changes its own copy.
type Mark struct {
	V int `json:"v"`
	// Recent are the newest posts read, the newest first, at most MaxRecent. There are
	// several because any of them may be deleted, and because a server may show a post
	// after one with a later id.
	Recent []Seen `json:"recent,omitempty"`
	// Base is Recent when the reading forward that is under way began: should the server
	// turn out to ignore what it is asked, that is how far the feed is read without a gap.
	Base []Seen `json:"base,omitempty"`
	Walk *Walk  `json:"walk,omitempty"` // a reading backwards under way, nil = none
	From string `json:"from,omitempty"` // what the next page lies above, of a reading upward under way
	Wide int    `json:"wide,omitempty"` // the most posts that a page of a reading upward had: a shorter one is the last
}

// Seen is a post that was read, and when it was made.
type Seen struct {
	ID string    `json:"id"`
	At time.Time `json:"at,omitzero"`
	// Version tells one version of it from the next, "" = the service has none.
	Version string `json:"version,omitempty"`
}

// Walk is a reading backwards under way: from the newest post down to Base. Until it
// has come there, Recent stays: what lies between is not read yet.
type Walk struct {
	Base []Seen `json:"base,omitempty"` // Recent, when the reading began
	Top  []Seen `json:"top,omitempty"`  // what Recent becomes
	Pins []Seen `json:"pins,omitempty"` // posts that stood out of order, and come again in their place
	// Under is when the post was made below which the next page lies, zero = not known.
	Under time.Time `json:"under,omitzero"`
	Trail Trail     `json:"trail"`
	Last  Seen      `json:"last,omitzero"`   // the lowest post read, of a walk by the service's own cursors
	Other bool      `json:"other,omitempty"` // the service's own cursors led nowhere: Feed.Below is gone by
}

// Of a Mark.
const (
	MarkVersion = 1
	MaxRecent   = 60        // posts in each of its lists
	maxMark     = 256 << 10 // bytes of it
)

// Encode is m as bytes.
func (m Mark) Encode() []byte {
	m.V = MarkVersion
	b, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("service: mark: %v", err)) // plain fields; times come from DecodeMark or stamp
	}
	return b
}

// DecodeMark reads what Encode gave. No bytes are the zero Mark.
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

// Valid says whether m can have been written by this.
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

// Foremost puts posts, the newest first, in front of had, each once.
func Foremost(posts, had []Seen) []Seen {
	out := make([]Seen, 0, MaxRecent)
	for _, s := range slices.Concat(posts, had) {
		if len(out) < MaxRecent && !Has(out, s.ID) {
			out = append(out, s)
		}
	}
	return out
}

// Renewed returns the posts to remember after a reading that found posts, the newest first. What it did not find
// stays in front of the post that it stood in front of, so that it is missed at its place the next time, too.
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

// Has says whether one of posts has that id.
func Has(posts []Seen, id string) bool {
	return slices.ContainsFunc(posts, func(s Seen) bool { return s.ID == id })
}

// Span is when the first and the last of posts were made, zero = not known.
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
