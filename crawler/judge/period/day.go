package period

import (
	"fmt"
	"time"
)

// Day is a date of the proleptic Gregorian calendar: days since 1970-01-01. Years before 1 are
// astronomical: the year 44 before Christ is -43.
type Day int32

// The first and the last year that are understood.
const (
	minYear = -9999
	maxYear = 9999
)

// NewDay returns the Day of a date. A day after the end of the month becomes the last one.
func NewDay(year, month, day int) Day {
	return civil(year, month, min(day, monthLen(year, month)))
}

// DayOf returns the day of t in t's own zone.
func DayOf(t time.Time) Day {
	y, m, d := t.Date()
	return NewDay(y, int(m), d)
}

// civil returns the Day of a date. It shifts the start of the year to March (H. Hinnant,
// "chrono-Compatible Low-Level Date Algorithms", 2013).
func civil(year, month, day int) Day {
	if month <= 2 {
		year--
		month += 12
	}
	era := floorDiv(year, 400)
	yoe := year - era*400
	doy := (153*(month-3)+2)/5 + day - 1
	return Day(era*146097 + yoe*365 + yoe/4 - yoe/100 + doy - 719468)
}

// Date returns the year, month and day of d.
func (d Day) Date() (year, month, day int) {
	z := int(d) + 719468
	era := floorDiv(z, 146097)
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day = doy - (153*mp+2)/5 + 1
	month, year = mp+3, yoe+era*400
	if month > 12 {
		month -= 12
		year++
	}
	return year, month, day
}

// Year returns the year of d.
func (d Day) Year() int { y, _, _ := d.Date(); return y }

// Weekday returns 1 for Monday to 7 for Sunday.
func (d Day) Weekday() int { return int(mod(int(d)+3, 7)) + 1 }

// String returns the ISO 8601 form of d, "2010-05-01". Years before 0 have a minus sign.
func (d Day) String() string {
	y, m, day := d.Date()
	if y < 0 || y > maxYear {
		return fmt.Sprintf("%s-%02d-%02d", yearText(y), m, day)
	}
	digits := func(n int) byte { return '0' + byte(n%10) }
	return string([]byte{digits(y / 1000), digits(y / 100), digits(y / 10), digits(y), '-', digits(m / 10), digits(m),
		'-', digits(day / 10), digits(day)})
}

func yearText(y int) string {
	if y < 0 {
		return fmt.Sprintf("-%04d", -y)
	}
	return fmt.Sprintf("%04d", y)
}

func leap(year int) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

// monthLen returns the number of days of a month. For a month that does not exist it returns 31.
func monthLen(year, month int) int {
	switch month {
	case 2:
		if leap(year) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// floorDiv returns a/b rounded down.
func floorDiv(a, b int) int {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func mod(a, b int) int { return a - floorDiv(a, b)*b }

// addMonths returns the year and month n months after a month.
func addMonths(year, month, n int) (int, int) {
	total := year*12 + month - 1 + n
	return floorDiv(total, 12), mod(total, 12) + 1
}

// easter returns Easter Sunday of a year (Meeus, Jones and Butcher).
func easter(year int) Day {
	a, b, c := mod(year, 19), floorDiv(year, 100), mod(year, 100)
	d, e := b/4, b%4
	g := (8*b + 13) / 25
	h := mod(19*a+b-d-g+15, 30)
	i, k := c/4, c%4
	l := mod(32+2*e+2*i-h-k, 7)
	m := (a + 11*h + 22*l) / 451
	n := h + l - 7*m + 114
	return NewDay(year, n/31, n%31+1)
}

// Span is a range of days, both ends inclusive.
type Span struct{ Start, End Day }

// Contains reports whether all of t is inside s.
func (s Span) Contains(t Span) bool { return s.Start <= t.Start && t.End <= s.End }

// Overlaps reports whether s and t share a day.
func (s Span) Overlaps(t Span) bool { return s.Start <= t.End && t.Start <= s.End }

// Distance returns the days between s and t, 0 if they overlap.
func (s Span) Distance(t Span) int { return int(max(0, s.Start-t.End, t.Start-s.End)) }

// yearSpan returns the days of year y.
func yearSpan(y int) Span { return Span{NewDay(y, 1, 1), NewDay(y, 12, 31)} }

// yearsSpan returns the days of the years from..to.
func yearsSpan(from, to int) Span { return Span{NewDay(from, 1, 1), NewDay(to, 12, 31)} }

// monthSpan returns the days of month m in year y.
func monthSpan(y, m int) Span { return Span{NewDay(y, m, 1), NewDay(y, m, 31)} }

// Grain is the precision of an expression.
type Grain string

// The grains.
const (
	GrainTime       Grain = "time"
	GrainDay        Grain = "day"
	GrainWeek       Grain = "week"
	GrainMonth      Grain = "month"
	GrainQuarter    Grain = "quarter"
	GrainSeason     Grain = "season"
	GrainHalf       Grain = "half"
	GrainYear       Grain = "year"
	GrainDecade     Grain = "decade"
	GrainCentury    Grain = "century"
	GrainMillennium Grain = "millennium"
	GrainInterval   Grain = "interval" // two dates, or an event
	GrainNone       Grain = ""
)
