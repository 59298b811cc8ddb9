package period

import (
	"fmt"
	"strconv"
	"strings"
)

// resolved is the result of resolving a mention.
type resolved struct {
	span  Span
	known bool // span is set
	value string
	grain Grain
	kind  Kind
	form  Form
}

// resolver resolves the mentions of a text in order and remembers the last date.
type resolver struct {
	ref    Day
	hasRef bool

	last      Span
	lastGrain Grain
	hasLast   bool
	fresh     bool // the last date is in this paragraph
}

// actions reports whether a rule may use the action name.
func actions(name string) bool { return resolvers[name] != nil }

// resolvers are the actions of rules. The table never changes.
var resolvers = map[string]func(*resolver, *mention) resolved{
	"date": (*resolver).date, "datetime": (*resolver).datetime, "numeric": (*resolver).date, "days": (*resolver).days,
	"days3": (*resolver).days,
	"year":  (*resolver).years, "years": (*resolver).years, "yearbc": (*resolver).era, "yearad": (*resolver).era,
	"century": (*resolver).century, "centuries": (*resolver).century, "millennium": (*resolver).century,
	"decade": (*resolver).decade, "decades": (*resolver).decade,
	"season": (*resolver).season, "quarter": (*resolver).months, "half": (*resolver).months,
	"weekday": (*resolver).weekday, "weekend": (*resolver).weekend, "offset": (*resolver).offset,
	"relative": (*resolver).relative, "unit": (*resolver).unit, "window": (*resolver).window,
	"duration": (*resolver).duration, "frequency": (*resolver).frequency, "clock": (*resolver).clock,
	"vague": (*resolver).vague, "holiday": (*resolver).holiday, "event": (*resolver).event,
}

// resolve resolves x, and the end of its interval.
func (r *resolver) resolve(x *mention) resolved {
	out := resolvers[x.act.name](r, x)
	if x.other != nil {
		r.remember(out)
		out = join(out, resolvers[x.other.act.name](r, x.other))
	}
	r.remember(out)
	return out
}

// join returns the interval from the start of a to the end of b.
func join(a, b resolved) resolved {
	out := resolved{value: a.value + "/" + b.value, form: FormInterval, kind: a.kind, grain: a.grain}
	if a.grain != b.grain {
		out.grain = GrainInterval
	}
	if b.kind != Explicit {
		out.kind = b.kind
	}
	if out.known = a.known && b.known && a.span.Start <= b.span.End; out.known {
		out.span = Span{a.span.Start, b.span.End}
	}
	return out
}

// remember makes a date the anchor for later mentions that refer back to it.
func (r *resolver) remember(d resolved) {
	if !d.known || d.kind == Vague || d.form == FormTime && d.kind == Deictic {
		return
	}
	r.last, r.lastGrain, r.hasLast, r.fresh = d.span, d.grain, true, true
}

// anchor returns the day that x refers to, and the kind of reference.
func (r *resolver) anchor(x *mention) (Day, Kind, bool) {
	switch {
	case x.anchorText && r.hasLast && x.dir > 0:
		return r.last.End, Anaphoric, true
	case x.anchorText && r.hasLast:
		return r.last.Start, Anaphoric, true
	case x.anchorText:
		return r.ref, Anaphoric, r.hasRef
	}
	return r.ref, Deictic, r.hasRef
}

// yearFor returns the year of a date, which may be missing in x. month is 0 for a season.
func (r *resolver) yearFor(x *mention, month int) (int, Kind, bool) {
	switch {
	case x.hasYear:
		return x.year, Explicit, true
	case x.yearOf != nil:
		of := r.unit(x.yearOf)
		return of.span.Start.Year(), of.kind, of.known
	case x.hasDir:
		day, kind, ok := r.anchor(x)
		return turn(day, month, x.dir), kind, ok
	case r.fresh || r.hasLast && !r.hasRef:
		return r.last.End.Year(), Anaphoric, true
	}
	return r.ref.Year(), Deictic, r.hasRef
}

// turn returns the year of the month before (dir -1) or after (1) the month of day, or the year of
// day (0).
func turn(day Day, month, dir int) int {
	y, m, _ := day.Date()
	switch {
	case dir < 0 && month >= m:
		return y - 1
	case dir > 0 && month <= m:
		return y + 1
	}
	return y
}

// date is a day or a month, with or without a year.
func (r *resolver) date(x *mention) resolved {
	out := resolved{form: FormDate, grain: GrainDay}
	year, month := 0, x.month
	if month == 0 { // "dia 5"
		switch {
		case r.fresh || r.hasLast && !r.hasRef:
			year, month, _ = r.last.End.Date()
			out.kind, out.known = Anaphoric, true
		default:
			year, month, _ = r.ref.Date()
			out.kind, out.known = Deictic, r.hasRef
		}
	} else {
		year, out.kind, out.known = r.yearFor(x, month)
	}
	if x.day == 0 {
		out.grain = GrainMonth
	}
	if !out.known {
		out.value = unknownDate(x.month, x.day)
		return out
	}
	if x.day > monthLen(year, month) {
		out.known = false // such as 29 February in a year without it
		out.value = unknownDate(x.month, x.day)
		return out
	}
	out.span = monthSpan(year, month)
	if x.day > 0 {
		out.span = Span{NewDay(year, month, x.day), NewDay(year, month, x.day)}
	}
	out.value = formatValue(out.span, out.grain)
	return out
}

// datetime is a date followed by a clock time.
func (r *resolver) datetime(x *mention) resolved {
	out := r.date(x)
	hour, _ := x.cap(0, "h")
	minute, _ := x.cap(0, "mi")
	out.form, out.grain = FormTime, GrainTime
	out.value += fmt.Sprintf("T%02d:%02d", hour, minute)
	return out
}

// unknownDate is the Value of a date without a year.
func unknownDate(month, day int) string {
	two := func(n int) string {
		if n == 0 {
			return "XX"
		}
		return fmt.Sprintf("%02d", n)
	}
	return "XXXX-" + two(month) + "-" + two(day)
}

// days is several days of one month, from the first to the last.
func (r *resolver) days(x *mention) resolved {
	first, last := *x, *x
	for _, c := range x.caps {
		if c.class == "d" {
			last.day = c.value
		}
	}
	a := r.date(&first)
	b := r.date(&last)
	return join(a, b)
}

// years is one year or a range of years.
func (r *resolver) years(x *mention) resolved {
	from, ok := x.cap(0, "Y")
	if !ok {
		from = x.year
	}
	to := from
	if n, ok := x.cap(1, "Y"); ok {
		to = n
	} else if yy, ok := x.cap(0, "yy"); ok && x.act.name == "years" {
		to = from - mod(from, 100) + yy
	}
	out := resolved{span: yearsSpan(from, to), known: true, grain: GrainYear, kind: Explicit, form: FormDate}
	out.value = formatValue(yearSpan(from), GrainYear)
	if to != from {
		out.value += "/" + formatValue(yearSpan(to), GrainYear)
		out.form = FormInterval
	}
	return out
}

// era is a year counted from the birth of Christ.
func (r *resolver) era(x *mention) resolved {
	year, _ := x.cap(0, "n", "Y")
	if x.act.name == "yearbc" {
		year = 1 - year
	}
	s := yearSpan(year)
	return resolved{span: s, known: true, value: formatValue(s, GrainYear), grain: GrainYear, kind: Explicit,
		form: FormDate}
}

// century is a century or a millennium, or a range of them.
func (r *resolver) century(x *mention) resolved {
	size, grain := 100, GrainCentury
	if x.act.name == "millennium" {
		size, grain = 1000, GrainMillennium
	}
	first, ok := x.cap(0, "rom", "n", "o", "ordw")
	out := resolved{known: true, grain: grain, kind: Explicit, form: FormDate}
	if !ok { // século passado
		out.kind, out.known = Deictic, r.hasRef
		first = floorDiv(r.ref.Year()-1, 100)
	}
	last, ok := x.cap(1, "rom", "n", "o", "ordw")
	if !ok {
		last = first
	}
	span := func(n int) Span {
		if x.act.args["bc"] != "" {
			return yearsSpan(1-n*size, -(n-1)*size)
		}
		return yearsSpan((n-1)*size+1, n*size)
	}
	if !out.known {
		out.value = "XXXX-XX-XX"
		return out
	}
	a, b := span(first), span(last)
	out.span = Span{min(a.Start, b.Start), max(a.End, b.End)}
	out.value = formatValue(a, grain)
	if last != first {
		out.value += "/" + formatValue(b, grain)
		out.form = FormInterval
	}
	return out
}

// decade is a decade or a range of decades.
func (r *resolver) decade(x *mention) resolved {
	full := func(n int) int {
		switch {
		case n >= 100:
			return n - n%10
		case x.hasYear: // do século XIX
			return x.year + n
		case n < 20:
			return 2000 + n
		}
		return 1900 + n
	}
	first, _ := x.cap(0, "decade", "dec", "decs", "Y", "yy")
	last, ok := x.cap(1, "decade", "dec", "decs", "Y", "yy")
	if !ok {
		last = first
	}
	a, b := full(first), full(last)
	if last < 100 && first >= 100 {
		b = a - mod(a, 100) + last
	}
	out := resolved{span: yearsSpan(min(a, b), max(a, b)+9), known: true, grain: GrainDecade, kind: Explicit,
		form: FormDate}
	out.value = formatValue(yearSpan(a), GrainDecade)
	if a != b {
		out.value += "/" + formatValue(yearSpan(b), GrainDecade)
		out.form = FormInterval
	}
	return out
}

// seasonMonths is the first month of each season, and seasonLen the number of months it touches.
var seasonMonths = [...]int{1: 3, 2: 6, 3: 9, 4: 12}

const seasonLen = 4

// season is a season of a year.
func (r *resolver) season(x *mention) resolved {
	n, _ := x.cap(0, "season")
	out := resolved{grain: GrainSeason, form: FormDate}
	var year int
	year, out.kind, out.known = r.yearFor(x, seasonMonths[n])
	if out.known && (x.hasDir || out.kind == Deictic && x.yearOf == nil) {
		year = seasonYear(r.ref, seasonMonths[n], x.dir)
	}
	return out.monthsFrom(year, seasonMonths[n], seasonLen)
}

// seasonYear returns the year in which the season that begins in month starts. For dir -1 it is the
// last season that ended before day. For 0 it is the season of day's year, or the one that still
// lasts on day. For 1 it is the first one that begins after day.
func seasonYear(day Day, month, dir int) int {
	y := day.Year()
	end := func(y int) Day { ey, em := addMonths(y, month, seasonLen-1); return NewDay(ey, em, 31) }
	switch {
	case dir < 0:
		for end(y) >= day {
			y--
		}
	case dir > 0:
		for NewDay(y, month, 1) <= day {
			y++
		}
	case end(y-1) >= day:
		y--
	}
	return y
}

// months is a quarter or half of a year.
func (r *resolver) months(x *mention) resolved {
	n, _ := x.cap(0, "o", "ordw", "n")
	out := resolved{grain: GrainQuarter, form: FormDate}
	size := 3
	if x.act.name == "half" {
		size, out.grain = 6, GrainHalf
	}
	if n*size > 12 {
		out.value = "XXXX-XX-XX"
		return out
	}
	var year int
	year, out.kind, out.known = r.yearFor(x, (n-1)*size+1)
	return out.monthsFrom(year, (n-1)*size+1, size)
}

// monthsFrom sets d to n months. The year is unknown if d is not known.
func (d resolved) monthsFrom(year, month, n int) resolved {
	lastYear, lastMonth := addMonths(year, month, n-1)
	if !d.known {
		d.value = unknownDate(month, 0) + "/" + unknownDate(lastMonth, 0)
		return d
	}
	d.span = Span{NewDay(year, month, 1), NewDay(lastYear, lastMonth, 31)}
	d.value = formatValue(monthSpan(year, month), GrainMonth) + "/" + formatValue(monthSpan(lastYear, lastMonth),
		GrainMonth)
	return d
}

// holiday is a day of each year: on a fixed date, or a number of days from Easter.
func (r *resolver) holiday(x *mention) resolved {
	out := resolved{grain: GrainDay, form: FormDate}
	month, day := 4, 1 // Easter is about then
	fixed, isFixed := x.act.args["date"]
	if isFixed {
		m, d, _ := strings.Cut(fixed, "-")
		month, _ = strconv.Atoi(m)
		day, _ = strconv.Atoi(d)
	}
	var year int
	year, _, out.known = r.yearFor(x, month)
	out.kind = Implicit
	switch {
	case !out.known && isFixed:
		out.value = unknownDate(month, day)
		return out
	case !out.known:
		out.value = "XXXX-XX-XX"
		return out
	}
	on := NewDay(year, month, day)
	if !isFixed {
		on = easter(year) + Day(x.act.arg("easter"))
	}
	out.span = Span{on, on}
	out.value = on.String()
	return out
}

// event is a named event with the dates of its rule.
func (r *resolver) event(x *mention) resolved {
	from, to, _ := strings.Cut(x.act.args["span"], "/")
	s := Span{parseDay(from), parseDay(to)}
	return resolved{span: s, known: true, value: x.act.args["span"], grain: GrainInterval, kind: Implicit,
		form: FormDate}
}

// parseDay parses YYYY-MM-DD in the rules.
func parseDay(s string) Day {
	var y, m, d int
	if _, err := fmt.Sscanf(s, "%d-%d-%d", &y, &m, &d); err != nil {
		return 0
	}
	return NewDay(y, m, d)
}

// formatValue returns the text of the unit of time s, with X for unknown parts.
func formatValue(s Span, grain Grain) string {
	y, m, d := s.Start.Date()
	switch grain {
	case GrainYear:
		return yearText(y) + "-XX-XX"
	case GrainMonth:
		return fmt.Sprintf("%s-%02d-XX", yearText(y), m)
	case GrainDecade:
		if y >= 0 {
			return yearText(y)[:3] + "X-XX-XX"
		}
	case GrainCentury:
		if y > 0 {
			return yearText(y)[:2] + "XX-XX-XX"
		}
	case GrainMillennium:
		if y > 0 {
			return yearText(y)[:1] + "XXX-XX-XX"
		}
	case GrainWeek:
		return isoWeek(s.Start)
	case GrainDay, GrainTime:
		return fmt.Sprintf("%s-%02d-%02d", yearText(y), m, d)
	}
	return s.Start.String() + "/" + s.End.String()
}

// isoWeek returns the ISO 8601 name of the week of d.
func isoWeek(d Day) string {
	thursday := d + Day(4-d.Weekday())
	y := thursday.Year()
	week := int(thursday-NewDay(y, 1, 1))/7 + 1
	return fmt.Sprintf("%s-W%02d", yearText(y), week)
}
