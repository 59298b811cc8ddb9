package scale

import (
	"time"

	"github.com/echo-node/echo-node/crawler/frontier"
)

// alone is what a pop costs the frontier itself: o.Sites sites of which each may
// be asked once a second, windows filled from memory, the clock running as the
// pops do.
func (o Options) alone() time.Duration {
	now := time.Unix(1_700_000_000, 0)
	f := frontier.New(frontier.Options{})
	for i := range o.Sites {
		k := o.url(i)
		f.Wake(1, k.Site(), now, time.Time{})
	}
	const second = time.Second
	row := o.url(0)
	pops, begun := -o.Sites, time.Now() // the first round spreads the sites over the second
	for {
		switch st := f.Next(now); st.Act {
		case frontier.Read:
			rows := make([]frontier.Row, st.Limit)
			for i := range rows {
				rows[i].Key = row
			}
			f.Fill(st, rows, time.Time{}, true)
		case frontier.Fetch:
			f.Done(st, now.Add(second), time.Time{}, nil)
			now = now.Add(second / time.Duration(o.Sites))
			if pops++; pops == 0 {
				begun = time.Now()
			}
			if pops >= o.Pops {
				return time.Since(begun) / time.Duration(pops)
			}
		default:
			now = st.At
		}
	}
}
