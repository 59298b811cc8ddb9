package storytest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Ways are ways in which the pages of a list never end correctly.
type Ways struct {
	Repeats   bool // the cursor always leads to the same page
	Ring      int  // cursors form a ring of that many pages; 0 = no ring
	Endless   bool // the last page repeats, each time with a new cursor
	Shuffles  bool // there is no end: pages are random members
	EmptyTail bool // the list continues with empty pages for ever
}

// Cut returns the page of a list at a cursor, newest first, and the next cursor, "" = none. n is
// the number of the request.
func (l Ways) Cut(all []Follow, limit int, cursor string, n int) (in []Follow, next string) {
	if l.Shuffles && len(all) > 0 {
		rng := rand.New(rand.NewPCG(1, uint64(n)))
		for _, i := range rng.Perm(len(all))[:min(len(all), 1+rng.IntN(20))] {
			in = append(in, all[i])
		}
		return in, fmt.Sprintf("lot%d", n)
	}
	below, err := strconv.ParseUint(strings.TrimPrefix(cursor, "row"), 10, 64)
	for _, f := range slices.Backward(all) {
		if (cursor == "" || err == nil && f.Row < below) && len(in) < limit {
			in = append(in, f)
		}
	}
	row := func(f Follow) string { return fmt.Sprintf("row%d", f.Row) }
	switch {
	case l.Repeats && len(in) > 0:
		return in, row(all[len(all)-1])
	case l.Ring > 0 && len(all) > 0:
		ring, _ := strconv.Atoi(strings.TrimPrefix(cursor, "ring"))
		in = nil
		for i := range min(len(all), limit) {
			in = append(in, all[(ring*limit+i)%len(all)])
		}
		return in, fmt.Sprintf("ring%d", (ring+1)%l.Ring)
	case l.Endless && len(in) < limit:
		if len(in) == 0 { // after the end, the last page comes again
			in = append(in, all[:min(len(all), 2)]...)
		}
		return in, fmt.Sprintf("end%d", n)
	case l.EmptyTail && len(in) < limit:
		return in, fmt.Sprintf("end%d", n)
	case len(in) == limit:
		return in, row(in[len(in)-1])
	}
	return in, ""
}
