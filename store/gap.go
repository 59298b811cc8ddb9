package store

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// GapWords returns all values of Gap.What.
func GapWords() []string {
	return []string{GapAsked, GapSkipped, GapCut, GapLimited, GapUnreachable, GapExpired, GapIncomplete}
}

// Check cuts g to the limits, or returns an error if g is invalid.
func (g *Gap) Check() error {
	g.Reason, g.Source, g.Peer = Clip(g.Reason, MaxHeader), Clip(g.Source, MaxHeader), Clip(g.Peer, MaxHeader)
	g.From, g.To, g.At = g.From.UTC().Truncate(Tick), g.To.UTC().Truncate(Tick), g.At.UTC().Truncate(Tick)
	g.ReadAt = g.ReadAt.UTC().Truncate(Tick)
	switch {
	case !slices.Contains(GapWords(), g.What):
		return fmt.Errorf("gap: %.40q is none of %s", g.What, GapWords())
	case g.From.IsZero() || g.At.IsZero() || !g.To.IsZero() && g.To.Before(g.From):
		return fmt.Errorf("gap: from %s to %s, found at %s", g.From, g.To, g.At)
	case !g.ReadAt.IsZero() && g.ReadAt.Before(g.From):
		return fmt.Errorf("gap: from %s, read at %s", g.From, g.ReadAt)
	case len(g.About) > MaxKeyBytes:
		return fmt.Errorf("gap: about a key of %d bytes", len(g.About))
	}
	return nil
}

// Name distinguishes g from the other gaps of its Key. Names sort in order of From.
func (g *Gap) Name() string { return g.Part() }

// Part returns the end of the key of g's row.
func (g *Gap) Part() string {
	sum := sha256.Sum256([]byte(g.What + "\x00" + string(g.About)))
	return string(append(TimePart(g.From), sum[:8]...))
}

// TimePart encodes t in bytes that sort in the order of time.
func TimePart(t time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(t.UnixMicro())^1<<63)
}
