package call

import (
	"time"

	"github.com/echo-node/echo-node/dht/wire"
)

// Busy returns a refusal for now. after is the delay before the next try.
func Busy(reason string, after time.Duration) *Refusal {
	return &Refusal{Code: wire.Refusal_CODE_BUSY, Reason: reason, After: after}
}
