package store

import (
	"fmt"
	"time"
)

// Hint is what a page or feed says about a Key besides linking to it: that the Key last changed at
// At. The zero Hint says nothing. It travels with an Admission, and Admit does not store it. The
// crawler decides what to do with it (Replan).
type Hint struct {
	Kind HintKind
	At   time.Time // to the second
}

// HintKind is the origin of a Hint.
type HintKind uint8

// The kinds. The numbers are stored and sent to other peers; never renumber.
const (
	HintSitemap   HintKind = 1 // lastmod in a sitemap of the Key's own site
	HintFeed      HintKind = 2 // date of an entry in a feed of the Key's own site
	HintElsewhere HintKind = 3 // one of these two, of another site
	HintHeader    HintKind = 4 // Last-Modified in the Key's own response; never sent to other peers
)

// String returns the name of the kind in `show`, `status` and metrics.
func (k HintKind) String() string {
	switch k {
	case HintSitemap:
		return "sitemap"
	case HintFeed:
		return "feed"
	case HintElsewhere:
		return "elsewhere"
	case HintHeader:
		return "last-modified"
	}
	return fmt.Sprintf("hint(%d)", uint8(k))
}

// MaxHintTime is the limit of Hint.At in Unix seconds, as for the times of a History.
const MaxHintTime = 1 << 36

// ParseHint decodes a Hint from another peer or an outbox row. It returns the zero Hint, which has
// no effect, for a kind that is never sent and for an invalid time.
func ParseHint(kind uint64, unix int64) Hint {
	if kind < uint64(HintSitemap) || kind > uint64(HintElsewhere) || unix <= 0 || unix > MaxHintTime {
		return Hint{}
	}
	return Hint{HintKind(kind), time.Unix(unix, 0).UTC()}
}

// Sent returns h as it is stored and sent.
func (h Hint) Sent() Hint {
	if h.At.IsZero() {
		return Hint{}
	}
	return ParseHint(uint64(h.Kind), h.At.Unix())
}

// Plan is a new due time for a Key that was fetched before.
type Plan struct {
	Was     Due // as it was read
	At      time.Time
	History []byte
}

// MaxPlans is the maximum number of Plans in one Replan.
const MaxPlans = 1 << 10
