package contest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Thing is one item of a World.
type Thing struct {
	Name    string
	Born    int64   // Unix seconds; the first state
	Changes []int64 // ascending Unix seconds, after Born
	Weight  float64 // importance, with a mean of about 1 over a world
	Class   int     // true class by the thesis's periods, 0 the fastest, from its changes
	Drawn   int     // the class from which it was drawn, in populations b and paper; else 0
	Static  int     // what the static classifier says of it at first sight
}

// World is what really happens between From and To, in Unix seconds.
type World struct {
	Name     string
	From, To int64
	Page     int  // posts that one visit sees; 1 = a page, of which one state is seen
	Timeline bool // measured by posts missed
	Counted  bool // a visit shows Page posts and also how many there were
	Things   []Thing
}

// Limits of ReadHistory.
const (
	maxLine  = 4 << 20
	maxItems = 1 << 20
)

// ReadHistory reads a file of histories. Each line has one item: its name and the Unix times of
// its changes, separated by tabs, in any order. The first time is its birth. Every error is
// reported with its line. More than a million items are refused.
func ReadHistory(r io.Reader) ([]Thing, error) {
	scan := bufio.NewScanner(r)
	scan.Buffer(make([]byte, 0, 1<<16), maxLine)
	var things []Thing
	for line := 1; scan.Scan(); line++ {
		if strings.TrimSpace(scan.Text()) == "" {
			continue
		}
		if len(things) == maxItems {
			return nil, fmt.Errorf("contest: read history: more than %d items", maxItems)
		}
		t, err := parseThing(scan.Text())
		if err != nil {
			return nil, fmt.Errorf("contest: read history: line %d: %w", line, err)
		}
		things = append(things, t)
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("contest: read history: %w", err)
	}
	if len(things) == 0 {
		return nil, errors.New("contest: read history: no items")
	}
	return things, nil
}

func parseThing(line string) (Thing, error) {
	name, rest, ok := strings.Cut(line, "\t")
	if !ok || name == "" {
		return Thing{}, errors.New("no item, tab, time")
	}
	var times []int64
	for f := range strings.SplitSeq(rest, "\t") {
		v, err := strconv.ParseInt(strings.TrimSpace(f), 10, 64)
		if err != nil || v <= 0 || v > 1<<36 {
			return Thing{}, fmt.Errorf("%q is no unix time", f)
		}
		times = append(times, v)
	}
	slices.Sort(times)
	times = slices.Compact(times)
	return Thing{Name: name, Born: times[0], Changes: times[1:]}, nil
}

const (
	secondsPerDay = 86400
	// settledShare of all changes lie before the end of a replay, because the newest part of a
	// record is often incomplete.
	settledShare = 0.98
)

// Replay returns the world of the last days of histories, without items not born by its end and
// without later changes.
func Replay(name string, things []Thing, days int) (World, error) {
	var all []int64
	for _, t := range things {
		all = append(all, t.Changes...)
	}
	if len(all) == 0 {
		return World{}, errors.New("contest: replay: nothing ever changes")
	}
	slices.Sort(all)
	w := World{Name: name, To: all[int(settledShare*float64(len(all)-1))], Page: 1}
	w.From = w.To - int64(days)*secondsPerDay
	for _, t := range things {
		if t.Born < w.To-30*secondsPerDay {
			w.Things = append(w.Things, w.cut(t))
		}
	}
	if len(w.Things) == 0 {
		return World{}, errors.New("contest: replay: no item lives in the window")
	}
	w.weigh()
	// No features of the items are known here. So the static classifier is as good as the
	// dissertation's tree at the natural mix.
	w.Judge(treeAccuracy, rand.New(rand.NewPCG(11, 11)))
	return w, nil
}

// treeAccuracy is the accuracy of the dissertation's tree on held-out pages.
const treeAccuracy = 0.7436

// cut reduces t to what happens in the window.
func (w *World) cut(t Thing) Thing {
	lo, _ := slices.BinarySearch(t.Changes, max(w.From, t.Born)+1)
	hi, _ := slices.BinarySearch(t.Changes, w.To)
	t.Changes = t.Changes[lo:max(lo, hi)]
	t.Born = max(t.Born, w.From)
	t.Class = thesisClass(t, w.To)
	return t
}

// Sample returns a world of at most n of w's things, drawn without replacement.
func (w World) Sample(n int, rng *rand.Rand) World {
	if len(w.Things) <= n {
		return w
	}
	things := make([]Thing, n)
	for i, j := range rng.Perm(len(w.Things))[:n] {
		things[i] = w.Things[j]
	}
	w.Things = things
	return w
}

// weigh sets the importance by rank, 1/√rank in a fixed shuffle, mean 1. A few items are wanted
// by many, independent of how often they change.
func (w *World) weigh() {
	rng := rand.New(rand.NewPCG(7, 7))
	sum := 0.0
	for rank, i := range rng.Perm(len(w.Things)) {
		w.Things[i].Weight = 1 / sqrt(float64(rank+1))
		sum += w.Things[i].Weight
	}
	for i := range w.Things {
		w.Things[i].Weight *= float64(len(w.Things)) / sum
	}
}

// thesisClass returns the class whose period is nearest, in the logarithm, to the mean interval
// between changes.
func thesisClass(t Thing, to int64) int {
	days := float64(to-t.Born) / secondsPerDay
	interval := days / max(0.5, float64(len(t.Changes)))
	for c, edge := range [...]float64{1.73, 9.5, 53.7} { // geometric means of 1, 3, 30, 96
		if interval < edge {
			return c
		}
	}
	return 3
}

func clock(unix int64) time.Time { return time.Unix(unix, 0).UTC() }
