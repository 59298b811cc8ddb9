package mastodon

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Mark is how far a timeline has been read, and where a reading of it stands. The
// zero value has read nothing. It is a value: a reading changes its own copy.
type Mark struct {
	V int `json:"v"`
	// Recent are the newest posts read, the newest first, at most maxRecent. There are
	// several because any of them may be deleted, and because a server may show a post
	// after one with a later id.
	Recent []Seen `json:"recent,omitempty"`
	// Base is Recent when the reading forward that is under way began: should min_id
	// turn out to be ignored, that is how far the feed is read without a gap.
	Base []Seen `json:"base,omitempty"`
	Walk *Walk  `json:"walk,omitempty"` // a reading backwards under way, nil = none
}

// Seen is a post that was read, and when it was made.
type Seen struct {
	ID string    `json:"id"`
	At time.Time `json:"at,omitzero"`
}

// Walk is a reading backwards under way: from the newest post down to Base. Until it
// has come there, Recent stays: what lies between is not read yet.
type Walk struct {
	Base []Seen `json:"base,omitempty"` // Recent, when the reading began
	Top  []Seen `json:"top,omitempty"`  // what Recent becomes
	Pins []Seen `json:"pins,omitempty"` // posts that stood out of order, and come again in their place
	// Under is when the post was made below which the next page lies, zero = not known.
	Under time.Time `json:"under,omitzero"`
	Trail trail     `json:"trail"`
}

const (
	markVersion = 1
	maxRecent   = 60
	maxMark     = 256 << 10 // bytes of a Mark
)

// Encode is m as bytes.
func (m Mark) Encode() []byte {
	m.V = markVersion
	b, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("mastodon: mark: %v", err)) // plain fields; times come from DecodeMark or stamp
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
		return Mark{}, fmt.Errorf("mastodon: mark: %d bytes, at most %d", len(b), maxMark)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return Mark{}, fmt.Errorf("mastodon: mark: %w", err)
	}
	if err := m.valid(); err != nil {
		return Mark{}, fmt.Errorf("mastodon: mark: %w", err)
	}
	return m, nil
}

func (m Mark) valid() error {
	lists := [][]Seen{m.Recent, m.Base}
	if m.V != markVersion {
		return fmt.Errorf("version %d, want %d", m.V, markVersion)
	}
	if w := m.Walk; w != nil {
		if err := w.Trail.valid(); err != nil {
			return err
		}
		lists = append(lists, w.Base, w.Top, w.Pins)
	}
	for _, l := range lists {
		if len(l) > maxRecent {
			return fmt.Errorf("%d ids, at most %d", len(l), maxRecent)
		}
		for _, s := range l {
			if s.ID == "" || len(s.ID) > maxID {
				return errors.New("not an id")
			}
		}
	}
	return nil
}

// newest puts posts, the newest first, in front of had, each once.
func newest(posts, had []Seen) []Seen {
	out := make([]Seen, 0, maxRecent)
	for _, s := range slices.Concat(posts, had) {
		if len(out) < maxRecent && !has(out, s.ID) {
			out = append(out, s)
		}
	}
	return out
}

func has(posts []Seen, id string) bool {
	return slices.ContainsFunc(posts, func(s Seen) bool { return s.ID == id })
}

// span is when the first and the last of posts were made, zero = not known.
func span(posts []Seen) (first, last time.Time) {
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
