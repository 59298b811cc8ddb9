package format

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/partition/strictjson"
	"github.com/echo-node/echo-node/store"
)

// maxGapRow is the most that a gap has as JSON: texts of maxHeader bytes and a
// Key or two, escaped.
const maxGapRow = 6*(4*store.MaxHeader+2*store.MaxKeyBytes) + 1<<10

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

func ParseGap(b []byte) (g store.Gap, err error) {
	if err := strictjson.Unmarshal(b, &g); err != nil {
		return g, fmt.Errorf("gap: %w: %w", ErrBadRow, err)
	}
	return g, g.Check()
}

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
