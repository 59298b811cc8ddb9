package contest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Populations returns the names of the synthetic worlds.
//
//	a      marginals of the dissertation: about 30 % never change, 40 % at least weekly
//	b      true intervals of 1, 3, 30 and 96 days in the dissertation's shares
//	drift  as a, but each page's rate is drawn anew about once in four months
//	burst  changes come in flurries, with long silences between
//	echo   a community of accounts like TwitterEcho's: gaps between posts by its table,
//	       60 % silent, sessions, quiet nights; a visit shows the last post only
//	table  as echo, but each account knows its row of the table (Thing.Drawn), and has
//	       as many posts per sitting as the coverage printed in that row requires
//	paper  as b, but group 0 as the dissertation found it: changed at each of 100 daily
//	       visits, which is 4.5 changes a day, not one
func Populations() []string { return []string{"a", "b", "drift", "burst", "echo", "table", "paper"} }

// start is the first second of every synthetic world, a Monday.
var start = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

// Populate draws a world of n items over days from a population.
func Populate(name string, n, days int, rng *rand.Rand) (World, error) {
	w := World{Name: name, From: start, To: start + int64(days)*secondsPerDay, Page: 1, Things: make([]Thing, n)}
	w.Timeline = name == "echo" || name == "table"
	w.Counted = w.Timeline // users/lookup: the profile's counter and the last post
	for i := range w.Things {
		t := &w.Things[i]
		t.Name, t.Born = fmt.Sprintf("%s/%d", name, i), w.From
		switch name {
		case "a":
			t.Changes = poisson(nil, rng, rateA(rng), w.From, w.To)
		case "b":
			var r float64
			r, t.Drawn = rateB(rng)
			t.Changes = poisson(nil, rng, r, w.From, w.To)
		case "paper":
			var r float64
			if r, t.Drawn = rateB(rng); t.Drawn == 0 {
				r = 4.5
			}
			t.Changes = poisson(t.Changes, rng, r, w.From, w.To)
		case "drift":
			for at := w.From; at < w.To; {
				end := min(w.To, at+int64(rng.ExpFloat64()*120*secondsPerDay)+1)
				t.Changes = poisson(t.Changes, rng, rateA(rng), at, end)
				at = end
			}
		case "burst":
			t.Changes = bursts(rng, w.From, w.To)
		case "echo":
			t.Changes = account(rng, w.From, w.To)
		case "table":
			t.Changes, t.Drawn = tableAccount(rng, w.From, w.To)
		default:
			return World{}, fmt.Errorf("contest: no population %q (there are %v)", name, Populations())
		}
		t.Changes = slices.Compact(t.Changes)
		t.Class = thesisClass(*t, w.To)
	}
	w.weigh()
	w.Judge(treeAccuracy, rng)
	return w, nil
}

// Judge gives each thing the class that a static classifier of that accuracy says: its true
// class, or any other.
func (w *World) Judge(accuracy float64, rng *rand.Rand) {
	for i := range w.Things {
		t := &w.Things[i]
		t.Static = t.Class
		if rng.Float64() >= accuracy {
			t.Static = (t.Class + 1 + rng.IntN(3)) % 4
		}
	}
}

// rateA: 30 % never, 40 % between several times a day and weekly, 30 % between.
func rateA(rng *rand.Rand) float64 {
	switch u := rng.Float64(); {
	case u < 0.30:
		return 0
	case u < 0.70:
		return 1 / logUniform(rng, 0.4, 7)
	default:
		return 1 / logUniform(rng, 7, 200)
	}
}

// rateB: the groups 0 to 3 of the dissertation with the intervals that it meant.
func rateB(rng *rand.Rand) (rate float64, class int) {
	switch u := rng.Float64(); {
	case u < 0.108:
		return 1, 0
	case u < 0.199:
		return 1.0 / 3, 1
	case u < 0.310:
		return 1.0 / 30, 2
	}
	return 1.0 / 96, 3
}

func logUniform(rng *rand.Rand, lo, hi float64) float64 {
	return lo * math.Exp(rng.Float64()*math.Log(hi/lo))
}

// poisson appends events at rate per day in [from, to).
func poisson(out []int64, rng *rand.Rand, rate float64, from, to int64) []int64 {
	if rate <= 0 {
		return out
	}
	for at := float64(from); ; {
		at += rng.ExpFloat64() / rate * secondsPerDay
		if at >= float64(to) {
			return out
		}
		out = append(out, int64(at))
	}
}

// bursts returns flurries of a day or two, weeks or months apart.
func bursts(rng *rand.Rand, from, to int64) []int64 {
	var out []int64
	quiet := logUniform(rng, 10, 400)
	for at := float64(from); ; {
		at += rng.ExpFloat64() * quiet * secondsPerDay
		end := min(float64(to), at+logUniform(rng, 0.2, 4)*secondsPerDay)
		if at >= float64(to) {
			return out
		}
		out = poisson(append(out, int64(at)), rng, 8, int64(at), int64(end))
		at = end
	}
}

func sqrt(x float64) float64 { return math.Sqrt(x) }

// echoGaps returns the rows of TwitterEcho's table of coverage: users with a mean gap between
// posts of up to that many hours.
func echoGaps() [10]struct{ users, hours float64 } {
	return [10]struct{ users, hours float64 }{
		{127, 1}, {217, 3}, {216, 6}, {277, 12}, {378, 24}, {725, 72}, {358, 144}, {228, 288}, {82, 576}, {57, 8760}}
}

// account draws one account's posts: its mean gap from the table, including silent accounts;
// sessions of a few posts minutes apart; a tenth from 3 to 8 o'clock.
func account(rng *rand.Rand, from, to int64) []int64 {
	row := echoRow(rng)
	if row == EchoRows {
		return lapsed(rng, from, to)
	}
	return sittings(rng, 3, echoGap(row, 0.3, rng), from, to)
}

// EchoRows is the number of rows of TwitterEcho's table. An account of population table whose
// Thing.Drawn is EchoRows is in none of them: it has not posted for a month.
const EchoRows = 10

// tableAccount is account with its row. Omitted posts of the night would make its gap longer
// than the row says, so the drawn gap is shorter by that amount.
func tableAccount(rng *rand.Rand, from, to int64) (posts []int64, row int) {
	if row = echoRow(rng); row == EchoRows {
		return lapsed(rng, from, to), row
	}
	awake := 1 - (nightEnds-nightBegins)/24.0*(1-nightShare)
	// Posts per sitting at which the six classes reach the coverage in the table.
	posted := [EchoRows]float64{1, 2.8, 4, 3.1, 2.6, 1.7, 1.5, 1.3, 1, 1}
	return sittings(rng, posted[row], awake*echoGap(row, 0.5, rng), from, to), row
}

// echoRow draws a row, or EchoRows for an account that had not posted for a month.
func echoRow(rng *rand.Rand) int {
	if rng.Float64() < 0.6 {
		return EchoRows
	}
	u := rng.Float64() * 2665
	rows := echoGaps()
	for i, r := range rows {
		if u < r.users {
			return i
		}
		u -= r.users
	}
	return EchoRows - 1
}

// lapsed returns the posts of a silent account: almost none returns.
func lapsed(rng *rand.Rand, from, to int64) []int64 {
	if rng.Float64() < 0.99 {
		return nil
	}
	return poisson(nil, rng, 0.05, from, to)
}

// echoGap draws a mean gap of a row, in seconds. The table does not say what the shortest gap
// is; it is least hours.
func echoGap(row int, least float64, rng *rand.Rand) float64 {
	rows, lo := echoGaps(), least
	if row > 0 {
		lo = rows[row-1].hours
	}
	return logUniform(rng, lo, rows[row].hours) * 3600
}

// The hours of little activity, and the share of posts in them.
const (
	nightBegins = 3
	nightEnds   = 8
	nightShare  = 0.1
)

// sittings returns posts with a mean gap of gap seconds, not counting the night, and session
// posts per sitting.
func sittings(rng *rand.Rand, session, gap float64, from, to int64) []int64 {
	inside := min(1200, gap/4)
	between := session*gap - (session-1)*inside
	var out []int64
	for at := float64(from) + rng.ExpFloat64()*between; at < float64(to); {
		if hour := int64(at) % secondsPerDay / 3600; hour < nightBegins || hour >= nightEnds ||
			rng.Float64() < nightShare {
			out = append(out, int64(at))
		}
		if rng.Float64() < 1/session {
			at += rng.ExpFloat64() * between
		} else {
			at += rng.ExpFloat64() * inside
		}
	}
	return out
}
