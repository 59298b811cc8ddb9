package period

import "fmt"

// The units of the lexicon.
const (
	unitSecond = iota + 1
	unitMinute
	unitHour
	unitDay
	unitWeek
	unitFortnight
	unitMonth
	unitQuarter
	unitHalf
	unitYear
	unitDecade
	unitCentury
	unitMillennium
	unitTwoYears
	unitThreeYears
	unitFiveYears
)

// size returns the length of a unit in days or in months.
func size(unit int) (days, months int) {
	switch unit {
	case unitDay:
		return 1, 0
	case unitWeek:
		return 7, 0
	case unitFortnight:
		return 15, 0
	case unitMonth:
		return 0, 1
	case unitQuarter:
		return 0, 3
	case unitHalf:
		return 0, 6
	case unitYear:
		return 0, 12
	case unitDecade:
		return 0, 120
	case unitCentury:
		return 0, 1200
	case unitMillennium:
		return 0, 12000
	case unitTwoYears:
		return 0, 24
	case unitThreeYears:
		return 0, 36
	case unitFiveYears:
		return 0, 60
	}
	return 0, 0 // parts of a day
}

// shift returns the day n units after d, within the years that are understood.
func shift(d Day, unit, n int) Day {
	days, months := size(unit)
	if months == 0 {
		return clamp(int(d) + days*n)
	}
	y, m, day := d.Date()
	y, m = addMonths(y, m, months*n)
	return NewDay(min(max(y, minYear), maxYear), m, day)
}

// clamp limits a day to the years that are understood.
func clamp(d int) Day {
	return Day(min(max(d, int(NewDay(minYear, 1, 1))), int(NewDay(maxYear, 12, 31))))
}

// around returns the unit of time that contains d, and its grain.
func around(d Day, unit int) (Span, Grain) {
	y, m, _ := d.Date()
	switch unit {
	case unitWeek:
		monday := d - Day(d.Weekday()-1)
		return Span{monday, monday + 6}, GrainWeek
	case unitFortnight:
		return Span{d - 14, d}, GrainInterval
	case unitMonth:
		return monthSpan(y, m), GrainMonth
	case unitQuarter:
		m -= (m - 1) % 3
		return Span{NewDay(y, m, 1), NewDay(y, m+2, 31)}, GrainQuarter
	case unitHalf:
		m -= (m - 1) % 6
		return Span{NewDay(y, m, 1), NewDay(y, m+5, 31)}, GrainHalf
	case unitYear:
		return yearSpan(y), GrainYear
	case unitDecade:
		y -= mod(y, 10)
		return yearsSpan(y, y+9), GrainDecade
	case unitCentury:
		y = floorDiv(y-1, 100)*100 + 1
		return yearsSpan(y, y+99), GrainCentury
	case unitMillennium:
		y = floorDiv(y-1, 1000)*1000 + 1
		return yearsSpan(y, y+999), GrainMillennium
	case unitTwoYears, unitThreeYears, unitFiveYears:
		_, months := size(unit)
		return yearsSpan(y, y+months/12-1), GrainInterval
	case unitDay:
		return Span{d, d}, GrainDay
	}
	return Span{d, d}, GrainTime
}

// amount returns the number of units in x and the unit.
func (x *mention) amount() (n, unit int) {
	unit, _ = x.cap(0, "unit")
	if u := x.act.arg("unit"); u > 0 {
		unit = u
	}
	n, ok := x.cap(0, "num2", "num")
	if !ok {
		if n = x.act.arg("n"); n == 0 {
			n = 1
		}
	}
	if times := x.act.arg("times"); times > 1 {
		n *= times
	}
	return n, unit
}

// "A few" is 2 to 8; "the last few" are 5.
const (
	fewLeast, fewMost = 2, 8
	fewLast           = 5
)

// relative resolves a distance from a day: "há dois anos", "in three weeks". The result is a day
// for units up to a fortnight, a month for units below a year, otherwise a year.
func (r *resolver) relative(x *mention) resolved {
	n, unit := x.amount()
	day, kind, ok := r.anchor(x)
	out := resolved{kind: kind, known: ok, form: FormDate, grain: GrainDay}
	if !ok {
		out.value = "XXXX-XX-XX"
		return out
	}
	if x.act.args["few"] != "" {
		a, b := shift(day, unit, x.dir*fewLeast), shift(day, unit, x.dir*fewMost)
		out.span, out.kind, out.grain = Span{min(a, b), max(a, b)}, Vague, GrainInterval
		out.value = formatValue(out.span, GrainInterval)
		return out
	}
	day = shift(day, unit, x.dir*n)
	switch {
	case unit < unitDay:
		out.grain = GrainTime
		out.span = Span{day, day}
	case unit <= unitFortnight:
		out.span = Span{day, day}
	case unit < unitYear:
		out.span, out.grain = around(day, unitMonth)
	default:
		out.span, out.grain = around(day, unitYear)
	}
	out.value = formatValue(out.span, out.grain)
	return out
}

// unit resolves this, the next or the last day, week, month ...
func (r *resolver) unit(x *mention) resolved {
	_, unit := x.amount()
	day, kind, ok := r.anchor(x)
	out := resolved{kind: kind, known: ok, form: FormDate}
	if !ok {
		_, out.grain = around(0, unit)
		out.value = "XXXX-XX-XX"
		return out
	}
	if unit == unitFortnight && x.dir > 0 {
		day--
	}
	out.span, out.grain = around(shift(day, unit, x.dir), unit)
	out.value = formatValue(out.span, out.grain)
	return out
}

// window resolves the last or next n units, with the day of writing included.
func (r *resolver) window(x *mention) resolved {
	n, unit := x.amount()
	out := resolved{kind: Deictic, known: r.hasRef, form: FormInterval, grain: GrainInterval}
	if x.act.args["few"] != "" {
		n, out.kind = fewLast, Vague
	}
	if !out.known {
		out.value = "XXXX-XX-XX"
		return out
	}
	far := shift(r.ref, unit, x.dir*n)
	out.span = Span{min(far, r.ref), max(far, r.ref)}
	out.value = formatValue(out.span, GrainInterval)
	return out
}

// weekday resolves a weekday by the conventions of the package comment.
func (r *resolver) weekday(x *mention) resolved {
	wd, _ := x.cap(0, "wd", "wdshort")
	day, kind, ok := r.anchor(x)
	out := resolved{kind: kind, known: ok, form: FormDate, grain: GrainDay}
	if !ok {
		out.value = fmt.Sprintf("XXXX-WXX-%d", wd)
		return out
	}
	ahead := mod(wd-day.Weekday(), 7) // days to the next one, 0 if it is today
	switch {
	case !x.hasDir: // the latest one that is not after day
		day += Day(ahead)
		if ahead > 0 {
			day -= 7
		}
	case x.dir == 0:
		day += Day(wd - day.Weekday())
	case x.dir < 0:
		day += Day(ahead - 7)
	case ahead == 0:
		day += 7
	default:
		day += Day(ahead)
	}
	out.span = Span{day, day}
	out.value = day.String()
	return out
}

// weekend resolves the last, this or the next weekend.
func (r *resolver) weekend(x *mention) resolved {
	out := resolved{kind: Deictic, known: r.hasRef, form: FormDate, grain: GrainInterval}
	if !out.known {
		out.value = "XXXX-WXX-WE"
		return out
	}
	saturday := r.ref + Day(6-r.ref.Weekday()) + Day(7*x.dir)
	out.span = Span{saturday, saturday + 1}
	out.value = formatValue(out.span, GrainInterval)
	return out
}

// offset resolves words such as yesterday: a number of days from the day of writing.
func (r *resolver) offset(x *mention) resolved {
	day := r.ref + Day(x.act.arg("n"))
	out := resolved{kind: Deictic, known: r.hasRef, form: FormDate, grain: GrainDay, span: Span{day, day}}
	if out.value = "XXXX-XX-XX"; out.known {
		out.value = day.String()
	}
	return out
}

// vague resolves a vague expression to generous limits: 90 days for "recently" and "soon" (dir -1
// and 1), 50 years for the far past and future (-2 and 2), the day of writing for "now" (0).
func (r *resolver) vague(x *mention) resolved {
	out := resolved{kind: Vague, known: r.hasRef, form: FormDate, grain: GrainNone}
	out.value = [...]string{"PAST_REF", "PAST_REF", "PRESENT_REF", "FUTURE_REF", "FUTURE_REF"}[x.dir+2]
	if !r.hasRef {
		return out
	}
	switch x.dir {
	case -2:
		out.span = Span{shift(r.ref, unitYear, -50), shift(r.ref, unitYear, -1)}
	case -1:
		out.span = Span{r.ref - 90, r.ref}
	case 0:
		out.span = Span{r.ref, r.ref}
	case 1:
		out.span = Span{r.ref, r.ref + 90}
	default:
		out.span = Span{r.ref, shift(r.ref, unitYear, 50)}
	}
	return out
}

// isoUnit returns n units as an ISO 8601 duration without the P.
func isoUnit(n, unit int) string {
	switch unit {
	case unitSecond:
		return fmt.Sprintf("T%dS", n)
	case unitMinute:
		return fmt.Sprintf("T%dM", n)
	case unitHour:
		return fmt.Sprintf("T%dH", n)
	case unitWeek:
		return fmt.Sprintf("%dW", n)
	}
	days, months := size(unit)
	switch {
	case days > 0:
		return fmt.Sprintf("%dD", n*days)
	case months%12 == 0:
		return fmt.Sprintf("%dY", n*months/12)
	}
	return fmt.Sprintf("%dM", n*months)
}

// grainOf returns the grain of a unit, for durations and frequencies.
func grainOf(unit int) Grain {
	_, grain := around(0, unit)
	return grain
}

// duration is an amount of time without a place in time.
func (r *resolver) duration(x *mention) resolved {
	n, unit := x.amount()
	out := resolved{value: "P" + isoUnit(n, unit), grain: grainOf(unit), kind: Explicit, form: FormDuration}
	if x.act.args["few"] != "" {
		out.value, out.kind = "PX"+isoUnit(0, unit)[len(isoUnit(0, unit))-1:], Vague
	}
	return out
}

// frequency is a repetition: "every Monday", "twice a year".
func (r *resolver) frequency(x *mention) resolved {
	if wd, ok := x.cap(0, "wds", "wd"); ok {
		return resolved{value: fmt.Sprintf("R/XXXX-WXX-%d", wd), grain: GrainDay, kind: Explicit, form: FormFrequency}
	}
	n, unit := x.amount()
	out := resolved{grain: grainOf(unit), kind: Explicit, form: FormFrequency}
	if x.act.args["times"] != "" {
		out.value = fmt.Sprintf("R%d/P%s", n, isoUnit(1, unit))
		return out
	}
	out.value = "R/P" + isoUnit(n, unit)
	return out
}

// clock is a time of day, on the last date of the paragraph if that was a day, otherwise on the day
// of writing.
func (r *resolver) clock(x *mention) resolved {
	hour, _ := x.cap(0, "h", "num")
	minute, ok := x.cap(0, "mi", "mi2")
	if n, has := x.act.args["n"]; has && !ok {
		if len(x.caps) == 0 || n == "720" {
			hour = x.act.arg("n") / 60
		} else {
			minute = x.act.arg("n")
		}
	}
	if x.act.args["pm"] != "" && hour < 12 {
		hour += 12
	}
	out := resolved{grain: GrainTime, form: FormTime, kind: Deictic}
	day := r.ref
	if r.fresh && r.lastGrain == GrainDay {
		day, out.kind, out.known = r.last.End, Anaphoric, true
	} else {
		out.known = r.hasRef
	}
	at := fmt.Sprintf("T%02d:%02d", hour, minute)
	if !out.known {
		out.value, out.kind = at, Explicit
		return out
	}
	out.span, out.value = Span{day, day}, day.String()+at
	return out
}
