package social

import (
	"context"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/crawler/social/pace"
	"github.com/echo-node/echo-node/store"
)

// Limits on the time between two visits of a tag, a public timeline or a search.
const (
	feedLeast = time.Minute
	feedMost  = time.Hour
	// feedPage is how many posts may come between two visits. It is half of a page, so that all
	// posts are still on the page if they come faster than before.
	feedPage = 20
)

// feed reads a tag, a public timeline or a search since the Mark.
func (v *visit) feed(ctx context.Context) error {
	if err := v.reading().posts(ctx, v.o.TagBack); err != nil {
		return err
	}
	v.b.State.Visited = v.now
	if err := v.round.Run(ctx); err != nil {
		return err
	}
	wait := feedMost
	if r := v.b.State.Mark.Recent; len(r) > 1 && !r[0].At.IsZero() {
		n := min(len(r), feedPage)
		wait = v.now.Sub(r[n-1].At) / time.Duration(n) * feedPage
	}
	wait = min(max(wait, feedLeast), feedMost)
	v.b.Next = store.Next{State: store.StateDone, At: v.now.Add(wait),
		Reason: fmt.Sprintf("again after %s, when half a page of posts may have come", pace.Brief(wait))}
	return nil
}
