package ui

import (
	"fmt"
	"html/template"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
)

func helpers() template.FuncMap {
	return template.FuncMap{
		"count": count, "size": size, "ago": ago, "span": span, "short": short, "link": link, "share": share,
		"add": func(a, b int) int { return a + b }, "whole": whole, "reasons": reasons,
		"kinds":    func() []string { return []string{"page", "profile", "post", "edges"} },
		"verdicts": func() []string { return []string{"in", "out", "undecided"} },
		"at":       func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	}
}

// count formats the whole number n with thin spaces between thousands.
func count(n any) string {
	s := fmt.Sprint(n)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return sign + s
}

// size formats a number of bytes for people.
func size(n int64) string {
	f, unit := float64(n), 0
	for f >= 1024 && unit < 4 {
		f, unit = f/1024, unit+1
	}
	if unit == 0 {
		return strconv.FormatInt(n, 10) + " B"
	}
	return fmt.Sprintf("%.1f %ciB", f, "KMGT"[unit-1])
}

// span formats seconds for people, in the two largest units.
func span(seconds float64) string {
	if seconds < 0 || seconds != seconds || seconds > 1e10 {
		return "?"
	}
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// ago says how long t was before now.
func ago(now, t time.Time) string {
	d := now.Sub(t)
	switch {
	case t.IsZero():
		return "never"
	case d < 0 || d < 2*time.Second:
		return "now"
	}
	return span(d.Seconds()) + " ago"
}

// short returns the end of a peer id, where ids differ.
func short(id string) string {
	if len(id) <= 10 {
		return id
	}
	return "…" + strings.ToValidUTF8(id[len(id)-8:], "")
}

// link returns the address that a Key names, or "" unless it is http or https.
func link(k partition.Key) string {
	address := k.URL()
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return address
}

// share returns part of all slices in percent, for a bar; 0 to 100.
func share(part, all int) int {
	if all <= 0 || part <= 0 {
		return 0
	}
	return min(100, int(100*int64(part)/int64(all)))
}

// whole reports whether every slice answered.
func whole(c api.Coverage) bool {
	return len(c.Missing) == 0 && c.SlicesAnswered >= c.SlicesTotal
}

// reason is one line of the table of stops.
type reason struct {
	Name  string
	Count int64
	Why   string // what a person can do about it, if there is anything to add
}

// reasons returns stops as lines, the most frequent first.
func reasons(stops map[string]int64) []reason {
	rs := make([]reason, 0, len(stops))
	for name, n := range stops {
		rs = append(rs, reason{name, n, strings.TrimPrefix(strings.TrimPrefix(api.StopText(name), name), ": ")})
	}
	sort.Slice(rs, func(i, j int) bool {
		if rs[i].Count != rs[j].Count {
			return rs[i].Count > rs[j].Count
		}
		return rs[i].Name < rs[j].Name
	})
	return rs
}
