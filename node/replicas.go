package node

import (
	"context"

	"github.com/echo-node/echo-node/dht/wire"
)

// asking is message.Peers.
type asking func(ctx context.Context, peer string, req *wire.Request) (*wire.Response, error)

// Call asks one peer.
func (f asking) Call(ctx context.Context, peer string, req *wire.Request) (*wire.Response, error) {
	return f(ctx, peer, req)
}
