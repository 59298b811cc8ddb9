package period

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Scope is the wanted time: one or more spans, in order, that do not touch.
type Scope []Span

// ErrScope is wrapped by every error of ParseScope.
var ErrScope = errors.New("not a scope")

// open is the first and the last day of a scope without limits.
var open = Span{NewDay(minYear, 1, 1), NewDay(maxYear, 12, 31)}

// ParseScope parses intervals separated by commas. Each is a date or FROM..TO, where FROM or TO may
// be missing. Both days are inclusive. A date is a year (1939, -0043 for 44 before Christ), a
// decade or century (194X, 19XX), a month (2001-09) or a day (1974-04-25), and means all its days.
func ParseScope(text string) (Scope, error) {
	var scope Scope
	for _, part := range strings.Split(text, ",") {
		s, err := parseInterval(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("scope %q: %w", text, err)
		}
		scope = append(scope, s)
	}
	if scope = Union(scope); scope[0] == open {
		return nil, fmt.Errorf("%w: %q is all time", ErrScope, text)
	}
	return scope, nil
}

// Union returns the days of all spans as few spans, in order.
func Union(spans []Span) Scope {
	sorted := slices.Clone(spans)
	slices.SortFunc(sorted, func(a, b Span) int { return int(a.Start) - int(b.Start) })
	var out Scope
	for _, s := range sorted {
		if n := len(out); n > 0 && s.Start <= out[n-1].End+1 {
			out[n-1].End = max(out[n-1].End, s.End)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// Content returns the time that a text talks about, from its expressions, in at most limit spans.
// It leaves out vague expressions, durations, frequencies and dates of the page itself. If there
// are more spans, it joins those with the smallest gap between them. Its String is short enough to
// keep in a record. A text talks about 1905 if its Content overlaps 1905.
func Content(expressions []Expression, limit int) Scope {
	var dated []Span
	for i := range expressions {
		if e := &expressions[i]; e.Dated && e.Kind != Vague && !e.Own {
			dated = append(dated, e.Span)
		}
	}
	return Union(dated).atMost(max(limit, 1))
}

// atMost keeps only the widest gaps of s.
func (s Scope) atMost(limit int) Scope {
	if len(s) <= limit {
		return s
	}
	byGap := make([]int, len(s)-1) // i is the gap after span i
	for i := range byGap {
		byGap[i] = i
	}
	gap := func(i int) int { return int(s[i+1].Start) - int(s[i].End) }
	slices.SortStableFunc(byGap, func(i, j int) int { return gap(j) - gap(i) })
	kept := byGap[:limit-1]
	slices.Sort(kept)
	var out Scope
	from := 0
	for _, i := range kept {
		out = append(out, Span{s[from].Start, s[i].End})
		from = i + 1
	}
	return append(out, Span{s[from].Start, s[len(s)-1].End})
}

// parseInterval parses a date or FROM..TO.
func parseInterval(part string) (Span, error) {
	from, to, ok := strings.Cut(part, "..")
	if !ok {
		return parsePoint(part)
	}
	out := open
	if from == "" && to == "" {
		return out, fmt.Errorf("%w: %q has no end at all", ErrScope, part)
	}
	if from != "" {
		s, err := parsePoint(from)
		if err != nil {
			return out, err
		}
		out.Start = s.Start
	}
	if to != "" {
		s, err := parsePoint(to)
		if err != nil {
			return out, err
		}
		out.End = s.End
	}
	if out.Start > out.End {
		return out, fmt.Errorf("%w: %q ends before it starts", ErrScope, part)
	}
	return out, nil
}

// parsePoint parses one date of a scope.
func parsePoint(text string) (Span, error) {
	bad := fmt.Errorf("%w: %q is no year, month or day", ErrScope, text)
	digits := strings.TrimPrefix(text, "-")
	fields := strings.Split(digits, "-")
	known := strings.TrimRight(fields[0], "Xx")
	if len(fields) > 3 || len(fields[0]) != 4 || len(known) < 2 || len(known) < 4 && len(fields) > 1 {
		return Span{}, bad
	}
	var numbers [3]int
	for i, f := range append([]string{known}, fields[1:]...) {
		n, err := strconv.ParseUint(f, 10, 16)
		if err != nil || i > 0 && len(f) != 2 {
			return Span{}, bad
		}
		numbers[i] = int(n)
	}
	year := numbers[0]
	if digits != text {
		year = -year
	}
	switch {
	case len(known) < 4:
		if year < 0 {
			return Span{}, bad
		}
		size := [...]int{2: 100, 3: 10}[len(known)]
		return yearsSpan(year*size, year*size+size-1), nil
	case len(fields) == 1:
		return yearSpan(year), nil
	case numbers[1] < 1 || numbers[1] > 12:
		return Span{}, bad
	case len(fields) == 2:
		return monthSpan(year, numbers[1]), nil
	case numbers[2] < 1 || numbers[2] > monthLen(year, numbers[1]):
		return Span{}, bad
	}
	day := NewDay(year, numbers[1], numbers[2])
	return Span{day, day}, nil
}

// String returns a form that ParseScope parses.
func (s Scope) String() string {
	parts := make([]string, 0, len(s))
	for _, span := range s {
		from, to := span.Start.String(), span.End.String()
		if span.Start == open.Start {
			from = ""
		}
		if span.End == open.End {
			to = ""
		}
		parts = append(parts, from+".."+to)
	}
	return strings.Join(parts, ",")
}

// Contains reports whether one span of s contains all of t.
func (s Scope) Contains(t Span) bool {
	return slices.ContainsFunc(s, func(w Span) bool { return w.Contains(t) })
}

// Overlaps reports whether s and t share a day.
func (s Scope) Overlaps(t Span) bool {
	return slices.ContainsFunc(s, func(w Span) bool { return w.Overlaps(t) })
}

// Distance returns the days between t and the nearest span of s, 0 if they overlap.
func (s Scope) Distance(t Span) int {
	best := int(open.End - open.Start)
	for _, w := range s {
		best = min(best, w.Distance(t))
	}
	return best
}

// Share returns the share of dates that are inside s. A date that is known in part must be inside
// with all days that it can mean (194X is not inside 1939..1945). ok is false when there are no
// dates.
func (s Scope) Share(dates []Span) (share float64, ok bool) {
	if len(dates) == 0 {
		return 0, false
	}
	in := 0
	for _, d := range dates {
		if s.Contains(d) {
			in++
		}
	}
	return float64(in) / float64(len(dates)), true
}

// PaperShare is the paper's limit. With fewer than a hundred dates it means all of them.
const PaperShare = 0.99

// Valid is the paper's rule: the links of a segment are followed if more than share of its dates
// are in scope. A segment without dates is not valid.
func (s Scope) Valid(dates []Span, share float64) bool {
	got, ok := s.Share(dates)
	return ok && got > share
}
