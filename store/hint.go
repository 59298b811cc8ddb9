package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/partition"
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

// maxHintTime bounds Hint.At in Unix seconds, as those of a History.
const maxHintTime = 1 << 36

// ParseHint is the Hint that another peer or an outbox row names by numbers; what
// is none of those that are sent is the zero Hint, which does no harm.
func ParseHint(kind uint64, unix int64) Hint {
	if kind < uint64(HintSitemap) || kind > uint64(HintElsewhere) || unix <= 0 || unix > maxHintTime {
		return Hint{}
	}
	return Hint{HintKind(kind), time.Unix(unix, 0).UTC()}
}

// sent is h as it is kept and sent.
func (h Hint) sent() Hint {
	if h.At.IsZero() {
		return Hint{}
	}
	return ParseHint(uint64(h.Kind), h.At.Unix())
}

func (e *encoder) hint(h Hint) {
	e.byte(byte(h.Kind))
	e.uint(uint64(h.At.Unix()))
}

func (d *decoder) hint() Hint {
	kind, unix := d.byte(), d.uint(maxHintTime)
	h := ParseHint(uint64(kind), int64(unix))
	d.bad = d.bad || h.Kind == 0
	return h
}

// Plan is another time for a Key that was fetched before.
type Plan struct {
	Was     Due // as it was read
	At      time.Time
	History []byte
}

// MaxPlans is how many Plans one Replan takes.
const MaxPlans = 1 << 10

// Replan makes the plans of Keys in sl that still stand as they were read, as one
// batch: who was fetched, moved or replanned since keeps what that said. It
// answers how many it took. A crash leaves all or none. ErrFenced: the slice was
// handed over.
func (s *Store) Replan(sl partition.Slice, plans []Plan) (taken int, err error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.leave()
	if len(plans) > MaxPlans {
		return 0, fmt.Errorf("store: replan: %d plans, at most %d", len(plans), MaxPlans)
	}
	err = s.write([]partition.Slice{sl}, func(t *txn) error {
		if err := s.fenced(sl); err != nil {
			return err
		}
		taken = 0
		done := make(map[partition.Key]bool, len(plans))
		for _, p := range plans {
			if done[p.Was.Key] || p.At.IsZero() || len(p.History) > MaxHistory {
				continue
			}
			done[p.Was.Key] = true
			id := s.idIn(sl, p.Was.Key)
			old, err := t.keyState(id, p.Was.Key)
			if errors.Is(err, ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			if old.state != StateDone || !old.at.Equal(p.Was.At) || old.history != string(p.Was.History) {
				continue
			}
			next := old
			next.at, next.history = p.At.UTC(), string(p.History)
			next.fetched = old.fetched.Add(tick) // later by the least, so that every replica takes it
			if err := t.put(id, p.Was.Key, &old, next); err != nil {
				return err
			}
			taken++
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("store: replan: %w", err)
	}
	return taken, nil
}
