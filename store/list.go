package store

import (
	"slices"
	"time"
)

// At reports whether e was in its list at t, as far as is known: from the first time it was seen
// until a complete walk missed it.
func (e Edge) At(t time.Time) bool {
	return slices.ContainsFunc(e.Times(), func(s Span) bool {
		return !t.Before(s.First) && (s.Gone.IsZero() || t.Before(s.Gone) || !t.After(s.Last))
	})
}

// Times returns the spans of e, at least one.
func (e Edge) Times() []Span {
	if len(e.Spans) > 0 {
		return e.Spans
	}
	s := Span{First: e.FirstSeen, Last: e.LastSeen}
	if e.GoneAt != nil {
		s.Gone = *e.GoneAt
	}
	return []Span{s}
}
