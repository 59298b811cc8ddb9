package node

import (
	"context"

	"github.com/echo-node/echo-node/crawler/social/stream"
)

// listen reads the event streams of accounts whose slices are crawled here. It reschedules the
// accounts with events for a visit now.
func (n *Node) listen(ctx context.Context) error {
	return n.social.Listen(ctx, stream.Peer{Slices: n.crawler.Crawled, Reschedule: n.crawler.RescheduleNow,
		Hold: n.crawler.Hold, Received: n.crawler.Received})
}
