package format

import (
	"bytes"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/partition/strictjson"
	"github.com/echo-node/echo-node/store"
)

// maxOverrideRow is the maximum size of an override as JSON.
const maxOverrideRow = 6*(4*store.MaxHeader+store.MaxKeyBytes) + 1<<10

// ParseOverride decodes and checks the unpacked row of an override.
func ParseOverride(b []byte) (o store.Override, err error) {
	if err := strictjson.Unmarshal(b, &o); err != nil {
		return o, fmt.Errorf("override: %w: %w", ErrBadRow, err)
	}
	return o, o.Check()
}

// checkOverride is CheckItem for overrides.
func checkOverride(id ItemID, b []byte) ([]byte, time.Time, error) {
	o, err := ParseOverride(b)
	if err != nil {
		return nil, time.Time{}, err
	}
	if o.Key != id.Key || o.Part() != id.Part {
		return nil, time.Time{}, fmt.Errorf("the override is of %.80q at %s", o.Key, o.At)
	}
	out, err := store.PlainJSON(o)
	return out, o.At, err
}

// joinOverrides joins two states with the same name; they differ only in the peer that received
// them.
func joinOverrides(a, b []byte) ([]byte, error) {
	if bytes.Compare(a, b) > 0 {
		return a, nil
	}
	return b, nil
}
