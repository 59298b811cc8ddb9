package format

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/partition/strictjson"
	"github.com/echo-node/echo-node/store"
)

// maxGapRow is the maximum size of a gap as JSON: texts of MaxHeader bytes and up to two Keys,
// escaped.
const maxGapRow = 6*(4*store.MaxHeader+2*store.MaxKeyBytes) + 1<<10

// partTime reads the time at the start of an item's part (store.TimePart).
func partTime(b string) (time.Time, error) {
	if len(b) < 8 {
		return time.Time{}, ErrBadRow
	}
	at := int64(binary.BigEndian.Uint64([]byte(b)) ^ 1<<63)
	if at < MinTime || at > MaxTime {
		return time.Time{}, ErrBadRow
	}
	return time.UnixMicro(at).UTC(), nil
}

// ParseGap decodes and checks the unpacked row of a gap.
func ParseGap(b []byte) (g store.Gap, err error) {
	if err := strictjson.Unmarshal(b, &g); err != nil {
		return g, fmt.Errorf("gap: %w: %w", ErrBadRow, err)
	}
	return g, g.Check()
}

// checkGap is CheckItem for gaps.
func checkGap(id ItemID, b []byte) ([]byte, time.Time, error) {
	g, err := ParseGap(b)
	if err != nil {
		return nil, time.Time{}, err
	}
	if g.Key != id.Key || g.Part() != id.Part {
		return nil, time.Time{}, fmt.Errorf("the gap is of %.80q from %s", g.Key, g.From)
	}
	out, err := store.PlainJSON(g)
	return out, g.At, err
}
