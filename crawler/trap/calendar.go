package trap

import (
	"strconv"
	"strings"
	"time"
)

// The range of years in which a calendar's pages are followed: from calendarFrom to this year plus
// calendarAhead. What people plan or remember on the web lies in this range. Outside it are the
// empty pages that a calendar makes for everyone who turns its pages.
//
// Only a link from one page of a calendar to a page of another year is judged. Pages about other
// times are still found through other links. The pages of a thread, /topic/5123/2 and
// /topic/5123/3, are not affected.
const (
	calendarFrom  = 1970
	calendarAhead = 1 // years
)

// calendar reports whether the link leads from one page of a calendar to another page of it, in
// another year that is out of range. year is the current year.
func calendar(from, to string, year int) bool {
	y, ok := dated(to)
	if !ok || y >= calendarFrom && y <= year+calendarAhead {
		return false
	}
	was, ok := dated(from)
	return ok && was != y && sameShape(from, to)
}

// sameShape reports whether two addresses differ in their numbers only.
func sameShape(a, b string) bool {
	for {
		a, b = strings.TrimLeft(a, digits), strings.TrimLeft(b, digits)
		i, j := strings.IndexAny(a, digits), strings.IndexAny(b, digits)
		if i < 0 || j < 0 {
			return a == b
		}
		if a[:i] != b[:j] {
			return false
		}
		a, b = a[i:], b[j:]
	}
}

const digits = "0123456789"

// dated returns the year of the date in an address. In a path that is /2031/5 or /2031-05-01. In a
// query it is year=2031, month=2031-05, date=20310501, or the seconds since 1970.
func dated(url string) (year int, ok bool) {
	_, rest, _ := strings.Cut(url, "://")
	path, query, _ := strings.Cut(rest, "?")
	_, path, _ = strings.Cut(path, "/")
	before := 0 // the year in the segment before, if it may be one
	for segment := range strings.SplitSeq(path, "/") {
		if y, ok := day8601(segment); ok {
			return y, true
		}
		n, isNumber := number(segment, 4)
		if isNumber && before != 0 && n >= 1 && n <= 12 && len(segment) <= 2 {
			return before, true
		}
		if before = 0; isNumber && len(segment) == 4 {
			before = n
		}
	}
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if y, ok := datedValue(strings.ToLower(name), value); ok {
			return y, true
		}
	}
	return 0, false
}

// datedValue returns the year of one query parameter. A name that means a year needs four digits. A
// name that means a date needs 6 digits (YYYYMM), 8 (YYYYMMDD), or 9 or 10 (seconds since 1970).
func datedValue(name, value string) (year int, ok bool) {
	if y, ok := day8601(value); ok {
		return y, true
	}
	switch strings.Trim(name, "[]_-") {
	case "year", "yr", "y", "ano", "jahr", "annee", "anno":
		n, ok := number(value, 4)
		return n, ok && len(value) == 4
	case "date", "day", "month", "week", "ym", "ymd", "cal", "calendar", "time", "timestamp", "ts", "data", "mes",
		"dia":
		n, ok := number(value, 10)
		switch {
		case !ok:
		case len(value) == 6 && n%100 >= 1 && n%100 <= 12:
			return n / 100, true
		case len(value) == 8 && n/100%100 >= 1 && n/100%100 <= 12:
			return n / 10000, true
		case len(value) >= 9:
			return time.Unix(int64(n), 0).UTC().Year(), true
		}
	}
	return 0, false
}

// day8601 reads 2031-05 and 2031-05-01, where the separator is one of - _ and the point.
func day8601(text string) (year int, ok bool) {
	if len(text) < 6 || len(text) > 10 || !strings.ContainsRune("-_.", rune(text[4])) {
		return 0, false
	}
	parts := strings.Split(text[5:], text[4:5])
	y, ok := number(text[:4], 4)
	m, okM := number(parts[0], 2)
	if len(parts) > 1 {
		d, okD := number(parts[1], 2)
		okM = okM && okD && d >= 1 && d <= 31
	}
	return y, ok && okM && len(parts) <= 2 && m >= 1 && m <= 12
}

// number reads a decimal number of at most so many digits.
func number(text string, most int) (int, bool) {
	if text == "" || len(text) > most || strings.Trim(text, digits) != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}
