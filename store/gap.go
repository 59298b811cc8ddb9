package store

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/partition/strictjson"
)

// maxGapRow is the most that a gap has as JSON: texts of maxHeader bytes and a
// Key or two, escaped.
const maxGapRow = 6*(4*maxHeader+2*MaxKeyBytes) + 1<<10

func gapWords() []string {
	return []string{GapAsked, GapSkipped, GapCut, GapLimited, GapUnreachable, GapExpired, GapIncomplete}
}

// check brings g within the caps, or says what is wrong with it.
func (g *Gap) check() error {
	g.Reason, g.Source, g.Peer = clip(g.Reason, maxHeader), clip(g.Source, maxHeader), clip(g.Peer, maxHeader)
	g.From, g.To, g.At = g.From.UTC().Truncate(tick), g.To.UTC().Truncate(tick), g.At.UTC().Truncate(tick)
	g.ReadAt = g.ReadAt.UTC().Truncate(tick)
	switch {
	case !slices.Contains(gapWords(), g.What):
		return fmt.Errorf("gap: %.40q is none of %s", g.What, gapWords())
	case g.From.IsZero() || g.At.IsZero() || !g.To.IsZero() && g.To.Before(g.From):
		return fmt.Errorf("gap: from %s to %s, found at %s", g.From, g.To, g.At)
	case !g.ReadAt.IsZero() && g.ReadAt.Before(g.From):
		return fmt.Errorf("gap: from %s, read at %s", g.From, g.ReadAt)
	case len(g.About) > MaxKeyBytes:
		return fmt.Errorf("gap: about a key of %d bytes", len(g.About))
	}
	return nil
}

// Name is what tells g from the other gaps of its Key: bytes, in order of From.
func (g *Gap) Name() string { return g.part() }

// part is the end of the key of g's row.
func (g *Gap) part() string {
	sum := sha256.Sum256([]byte(g.What + "\x00" + string(g.About)))
	return string(append(timePart(g.From), sum[:8]...))
}

// timePart is t as bytes that sort as time does.
func timePart(t time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(t.UnixMicro())^1<<63)
}

func partTime(b string) (time.Time, error) {
	if len(b) < 8 {
		return time.Time{}, errBadRow
	}
	at := int64(binary.BigEndian.Uint64([]byte(b)) ^ 1<<63)
	if at < minTime || at > maxTime {
		return time.Time{}, errBadRow
	}
	return time.UnixMicro(at).UTC(), nil
}

func parseGap(b []byte) (g Gap, err error) {
	if err := strictjson.Unmarshal(b, &g); err != nil {
		return g, fmt.Errorf("gap: %w: %w", errBadRow, err)
	}
	return g, g.check()
}

func checkGap(id itemID, b []byte) ([]byte, time.Time, error) {
	g, err := parseGap(b)
	if err != nil {
		return nil, time.Time{}, err
	}
	if g.Key != id.key || g.part() != id.part {
		return nil, time.Time{}, fmt.Errorf("the gap is of %.80q from %s", g.Key, g.From)
	}
	out, err := plainJSON(g)
	return out, g.At, err
}

// gap writes one of a commit.
func (t *txn) gap(id siteID, k partition.Key, g Gap, now time.Time) error {
	if g.Key = k; g.At.IsZero() {
		g.At = now
	}
	if err := g.check(); err != nil {
		return err
	}
	at := itemID{siteID: id, table: tabGap, key: k, part: g.part()}
	had, err := t.state(at)
	if err != nil {
		return err
	}
	if had != nil {
		old, err := parseGap(had)
		if err != nil {
			return err
		}
		if !g.At.After(old.At) { // the clock was set back
			g.At = old.At.Add(tick)
		}
	}
	state, err := plainJSON(g)
	if err != nil {
		return err
	}
	return t.item(at, state)
}

// Gaps calls fn for the ledger of k in sl (0: its hash slice) in order of From,
// until it answers false.
func (s *Store) Gaps(sl partition.Slice, k partition.Key, fn func(Gap) (bool, error)) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	p := itemKey(tabGap, s.idIn(sl, k), k)
	return s.gaps(p, after(p), fn)
}

// SliceGaps calls fn for the ledger of sl in order of site, Key and From, until it
// answers false. from is the last Gap of the call before, the zero Gap at first.
func (s *Store) SliceGaps(sl partition.Slice, from Gap, fn func(Gap) (bool, error)) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	p := slicePrefix(tabGap, sl)
	lower := p
	if from.Key != "" {
		lower = lowerItem(itemKey(tabGap, s.idIn(sl, from.Key), from.Key), from.part())
	}
	return s.gaps(lower, after(p), fn)
}

func (s *Store) gaps(lower, upper []byte, fn func(Gap) (bool, error)) error {
	err := s.scan(lower, upper, func(key, value []byte) (bool, error) {
		v, err := s.packer.openItem(tabGap, value)
		if err != nil {
			return false, err
		}
		g, err := parseGap(v)
		if err != nil {
			return false, fmt.Errorf("row %q: %w", key, err)
		}
		return fn(g)
	})
	if err != nil {
		return fmt.Errorf("store: gaps: %w", err)
	}
	return nil
}
