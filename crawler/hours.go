package crawler

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Hours is a part of every day: from one minute (included) to another (not included). It goes over
// midnight if the second minute is the smaller one. The zero value is the whole day.
type Hours struct{ from, to int } // minutes since midnight

const day = 24 * 60

// ParseHours reads "22-07" or "22:30-07:15". "" and "00-24" are the whole day. Equal ends are an
// error.
func ParseHours(text string) (Hours, error) {
	if text == "" {
		return Hours{}, nil
	}
	a, b, ok := strings.Cut(text, "-")
	from, okA := minutes(a)
	to, okB := minutes(b)
	if !ok || !okA || !okB || from == to || from == day {
		return Hours{}, fmt.Errorf("crawler: hours %.40q: want FROM-TO like 22-07 or 22:30-07:15", text)
	}
	if from == 0 && to == day {
		return Hours{}, nil
	}
	return Hours{from, to % day}, nil
}

// minutes reads "7", "07" or "07:30", up to 24:00, and returns minutes since midnight.
func minutes(text string) (int, bool) {
	hour, minute, both := strings.Cut(strings.TrimSpace(text), ":")
	h, ok := twoDigits(hour)
	m := 0
	if both {
		var okM bool
		m, okM = twoDigits(minute)
		ok = ok && okM && len(minute) == 2
	}
	n := h*60 + m
	return n, ok && m < 60 && n <= day
}

// twoDigits reads a number of one or two digits.
func twoDigits(text string) (int, bool) {
	if text == "" || len(text) > 2 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// Until returns how long after t the hours begin, in t's time zone. It is 0 within them, otherwise
// at least 1 s.
func (h Hours) Until(t time.Time) time.Duration {
	if h.from == h.to {
		return 0
	}
	at := t.Hour()*60 + t.Minute()
	if h.from < h.to && at >= h.from && at < h.to || h.from > h.to && (at >= h.from || at < h.to) {
		return 0
	}
	begin := time.Date(t.Year(), t.Month(), t.Day(), h.from/60, h.from%60, 0, 0, t.Location())
	if !begin.After(t) {
		begin = time.Date(t.Year(), t.Month(), t.Day()+1, h.from/60, h.from%60, 0, 0, t.Location())
	}
	return max(begin.Sub(t), time.Second)
}
