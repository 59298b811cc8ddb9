// Package call has what all requests between peers share: refusals, errors for wrong answers, and
// the encoding of slices and values in messages.
package call

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

// ErrVanished reports that a peer was not asked because it is no live member any more. ErrForeign
// reports that its answer does not belong to the request.
var (
	ErrVanished = errors.New("it has vanished")
	ErrForeign  = errors.New("its answer is to another question")
)

// Refusal is a peer's answer that it did not serve a request, as an error.
type Refusal struct {
	Code   wire.Refusal_Code
	Reason string
	After  time.Duration // delay before the next try; 0 = the peer does not say
}

func (e *Refusal) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Reason) }

// Response returns the refusal as a response to a request.
func (e *Refusal) Response() *wire.Response { return Refuse(e.Code, e.Reason, e.After) }

// IsRefusal reports whether err is, or wraps, a Refusal.
func IsRefusal(err error) bool {
	var refusal *Refusal
	return errors.As(err, &refusal)
}

// Malformed returns the refusal of an invalid request. err is the reason.
func Malformed(err error) error {
	return &Refusal{Code: wire.Refusal_CODE_MALFORMED, Reason: err.Error()}
}

// Refuse returns the response to a request that is not served. after is the delay before the next
// try.
func Refuse(code wire.Refusal_Code, reason string, after time.Duration) *wire.Response {
	return &wire.Response{Refusal: &wire.Refusal{Code: code, Reason: reason,
		RetryAfterMs: uint64(after / time.Millisecond)}}
}

// SliceOn returns how a message names a slice beside a Key: 0 for the hash slice of the Key.
func SliceOn(sl partition.Slice) uint64 {
	if sl.IsHash() {
		return 0
	}
	return uint64(sl)
}

// AppendSlices appends sls to a list of slices in a message.
func AppendSlices(to []uint64, sls []partition.Slice) []uint64 {
	for _, sl := range sls {
		to = append(to, uint64(sl))
	}
	return to
}

// Plain encodes v as JSON without HTML escapes. With them, a text of angle brackets becomes six
// times as long and does not fit a frame.
func Plain(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
