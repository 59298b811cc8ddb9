// Package call has what all requests between peers share: refusals, the faults of an answer,
// and how messages name slices and carry values.
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

// ErrVanished is why a peer is not asked: it is no live member any more. ErrForeign is why its
// answer is not taken.
var (
	ErrVanished = errors.New("it has vanished")
	ErrForeign  = errors.New("its answer is to another question")
)

// Refusal is a peer's own word that it did not serve a request, as an error.
type Refusal struct {
	Code   wire.Refusal_Code
	Reason string
	After  time.Duration // when to ask again; 0 = the peer does not say
}

func (e *Refusal) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Reason) }

// Response is the refusal as an answer to a request.
func (e *Refusal) Response() *wire.Response { return Refuse(e.Code, e.Reason, e.After) }

// IsRefusal says whether err is, or wraps, a Refusal.
func IsRefusal(err error) bool {
	var refusal *Refusal
	return errors.As(err, &refusal)
}

// Malformed is the refusal of a request that says what cannot be; err says what.
func Malformed(err error) error {
	return &Refusal{Code: wire.Refusal_CODE_MALFORMED, Reason: err.Error()}
}

// Refuse is the answer to a request that is not served. after is when to ask again.
func Refuse(code wire.Refusal_Code, reason string, after time.Duration) *wire.Response {
	return &wire.Response{Refusal: &wire.Refusal{Code: code, Reason: reason,
		RetryAfterMs: uint64(after / time.Millisecond)}}
}

// SliceOn is a slice as a message names it beside a Key: 0 for the hash slice of the Key.
func SliceOn(sl partition.Slice) uint64 {
	if sl.IsHash() {
		return 0
	}
	return uint64(sl)
}

// AppendSlices appends all of sls to a list of slices of a message.
func AppendSlices(to []uint64, sls []partition.Slice) []uint64 {
	for _, sl := range sls {
		to = append(to, uint64(sl))
	}
	return to
}

// Plain is JSON without the escapes that HTML would need: they sextuple a text
// of nothing but brackets, which then fits no frame.
func Plain(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
