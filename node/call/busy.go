package call

import (
	"time"

	"github.com/echo-node/echo-node/dht/wire"
)

// Busy refuses a request for now; after is when to ask again.
func Busy(reason string, after time.Duration) *Refusal {
	return &Refusal{Code: wire.Refusal_CODE_BUSY, Reason: reason, After: after}
}
