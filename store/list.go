package store

import (
	"slices"
	"time"
)

// At says whether e was in its list at a time, as far as is known: from when it was
// first met until a complete walk missed it.
func (e Edge) At(t time.Time) bool {
	return slices.ContainsFunc(e.Times(), func(s Span) bool {
		return !t.Before(s.First) && (s.Gone.IsZero() || t.Before(s.Gone) || !t.After(s.Last))
	})
}

// Times are the spans of e, one or more.
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
