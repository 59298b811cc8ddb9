package scale

import (
	"time"

	"github.com/echo-node/echo-node/crawler/frontier"
)

// alone measures the cost of a pop in the frontier itself. It has o.Sites sites, each of which
// may be asked once a second. Windows are filled from memory, and the clock advances with the
// pops.
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
