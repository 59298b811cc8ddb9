package store

import (
	"fmt"
	"time"
)

// Hint is what somebody said of a Key beside linking to it: that it changed last
// At. The zero Hint says nothing. It travels with an Admission and is not kept by
// Admit; what is made of it is the crawler's to decide (Replan).
type Hint struct {
	Kind HintKind
	At   time.Time // to the second
}

// HintKind is where a Hint comes from.
type HintKind uint8

// The kinds. The numbers are stored and on the wire; never renumber.
const (
	HintSitemap   HintKind = 1 // lastmod in a sitemap of the Key's own site
	HintFeed      HintKind = 2 // date of an entry in a feed of the Key's own site
	HintElsewhere HintKind = 3 // either, of another site
	HintHeader    HintKind = 4 // Last-Modified of the Key's own answer; it comes with a visit and is never sent
)

// String is the kind's word in `show`, `status` and metrics.
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

// MaxHintTime bounds Hint.At in Unix seconds, as those of a History.
const MaxHintTime = 1 << 36

// ParseHint is the Hint that another peer or an outbox row names by numbers; what
// is none of those that are sent is the zero Hint, which does no harm.
func ParseHint(kind uint64, unix int64) Hint {
	if kind < uint64(HintSitemap) || kind > uint64(HintElsewhere) || unix <= 0 || unix > MaxHintTime {
		return Hint{}
	}
	return Hint{HintKind(kind), time.Unix(unix, 0).UTC()}
}

// Sent is h as it is kept and sent.
func (h Hint) Sent() Hint {
	if h.At.IsZero() {
		return Hint{}
	}
	return ParseHint(uint64(h.Kind), h.At.Unix())
}

// Plan is another time for a Key that was fetched before.
type Plan struct {
	Was     Due // as it was read
	At      time.Time
	History []byte
}

// MaxPlans is how many Plans one Replan takes.
const MaxPlans = 1 << 10
