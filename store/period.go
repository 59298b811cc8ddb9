package store

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The results of crawler/judge for a record. Each depends on the record alone, so every peer gets
// the same result.

// MaxPeriod is the maximum number of intervals in Record.Period.
const MaxPeriod = 16

// Interval is a range of days, both inclusive, in ISO 8601: 1905-01-31, with a minus sign before
// astronomical years below 0.
type Interval struct {
	Start string `json:"start"`
	End   string `json:"end"`
}

// Days returns the ends of i as numbers that sort in the order of time: year times 10,000 plus
// month times 100 plus day. ok is false for an invalid interval, which a malicious peer may send.
func (i Interval) Days() (from, to int32, ok bool) {
	from, ok = dayNumber(i.Start)
	to, fine := dayNumber(i.End)
	return from, to, ok && fine && from <= to
}

// dayNumber parses a day in ISO 8601, see Interval.Days.
func dayNumber(s string) (int32, bool) {
	digits, before := strings.CutPrefix(s, "-")
	y, rest, ok := strings.Cut(digits, "-")
	m, d, fine := strings.Cut(rest, "-")
	if !ok || !fine || len(y) != 4 || len(m) != 2 || len(d) != 2 {
		return 0, false
	}
	var n [3]uint64
	for i, part := range [...]string{y, m, d} {
		var err error
		if n[i], err = strconv.ParseUint(part, 10, 16); err != nil {
			return 0, false
		}
	}
	if n[1] < 1 || n[1] > 12 || n[2] < 1 || n[2] > 31 {
		return 0, false
	}
	year := int32(n[0])
	if before {
		year = -year
	}
	return year*10_000 + int32(n[1]*100+n[2]), true
}

// Overlaps reports whether i and o share a day.
func (i Interval) Overlaps(o Interval) bool {
	a, b, ok := i.Days()
	c, d, fine := o.Days()
	return ok && fine && a <= d && c <= b
}

// VerdictVersion is the version of the Verdict format (field "v").
const VerdictVersion = 1

// Verdict is the decision whether an account belongs to the collected community, with its reasons.
type Verdict struct {
	V        int        `json:"v"`
	Verdict  string     `json:"verdict"`            // in, out or undecided
	Score    float64    `json:"score"`              // 0 to 1: the probability that it belongs
	Evidence []Evidence `json:"evidence,omitempty"` // strongest first
	By       string     `json:"by,omitempty"`       // the community and its version
	At       time.Time  `json:"at,omitzero"`        // when it was judged
	// Override is a person's decision; if set, Verdict is that decision and Judged is the judge's.
	Override *Override `json:"override,omitempty"`
	Judged   *Judged   `json:"judged,omitempty"`
}

// Evidence is one fact for (Weight above 0, in nats) or against belonging; see
// crawler/judge/community.
type Evidence struct {
	Kind   string  `json:"kind"`
	Text   string  `json:"text"`
	Weight float64 `json:"weight"`
}

// String returns e in a few words.
func (e Evidence) String() string { return fmt.Sprintf("%s %s (%+.2f)", e.Kind, e.Text, e.Weight) }

// Judged is the verdict of the judge alone.
type Judged struct {
	Verdict string  `json:"verdict"`
	Score   float64 `json:"score"`
}

// VerdictWord returns the verdict of r in one word, or "" if there is none.
func (r *Record) VerdictWord() string {
	if r.Verdict == nil {
		return ""
	}
	return r.Verdict.Verdict
}

// Fingerprint returns the text form of Record.Copies. It is the version of the rules, a dash, and
// in hex the simhash of the text's words and then the hash of the text.
func Fingerprint(version byte, bits, content uint64) string {
	b := binary.BigEndian.AppendUint64(nil, bits)
	b = binary.BigEndian.AppendUint64(b, content)
	return strconv.Itoa(int(version)) + "-" + hex.EncodeToString(b)
}
