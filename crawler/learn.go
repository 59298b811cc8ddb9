package crawler

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"

	"github.com/echo-node/echo-node/crawler/schedule"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/db"
)

// lessons is what this peer has learned of how all its Keys change. It has the model with which
// decisions begin, and the sample of histories to which the model is fitted. A salted hash of a
// Key's name alone decides whether the Key is in the sample. So a Key that is often visited is not
// more likely in it. Not safe for concurrent use.
type lessons struct {
	model  schedule.Model
	salt   uint64
	limit  uint64                       // the sample has the hashes up to this one
	sample map[uint64]*schedule.History // by hash; a history in it never changes
	after  time.Time                    // when the next fit is due, in the time of revisits
	wait   float64                      // between the last two fits, in mean intervals
	busy   bool                         // a fit is running
}

const (
	maxSample = 1000 // histories; above it, limit halves, and about half of them go
	// The first fit is after fitFirst mean intervals. Each later one waits fitLater times as long
	// as the one before, and at least one interval. The contest of policies uses the same values.
	fitFirst = 0.5
	fitLater = 1.5
)

// newLessons returns lessons that know nothing, with a salt of their own.
func newLessons() *lessons {
	return &lessons{model: schedule.NewModel(), salt: rand.Uint64(), limit: math.MaxUint64,
		sample: map[uint64]*schedule.History{}}
}

// see adds the history of k after a visit, if k is in the sample. h must not change afterwards.
func (l *lessons) see(k partition.Key, h *schedule.History) {
	if visits, _ := h.Totals(); visits == 0 {
		return
	}
	x := fnv.New64a()
	var salt [8]byte
	binary.BigEndian.PutUint64(salt[:], l.salt)
	x.Write(salt[:]) // a hash never fails to write
	x.Write([]byte(k))
	at := mixed(x.Sum64())
	if at > l.limit {
		return
	}
	l.sample[at] = h
	for len(l.sample) > maxSample {
		l.limit /= 2
		for at := range l.sample {
			if at > l.limit {
				delete(l.sample, at)
			}
		}
	}
}

// mixed spreads the bits of an FNV sum, whose high bits are nearly equal for similar names. It is
// the finaliser of MurmurHash3.
func mixed(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// due returns the sample to which the model is fitted now; nil if it is not time. The caller then
// fits the model, and clears busy.
func (l *lessons) due(now time.Time, interval time.Duration) []*schedule.History {
	if l.after.IsZero() {
		l.wait, l.after = fitFirst, now.Add(time.Duration(fitFirst*float64(interval)))
	}
	if l.busy || now.Before(l.after) || len(l.sample) == 0 {
		return nil
	}
	l.busy = true
	l.wait = max(1, fitLater*l.wait)
	l.after = now.Add(time.Duration(min(l.wait*float64(interval), float64(math.MaxInt64/4))))
	out := make([]*schedule.History, 0, len(l.sample))
	for _, h := range l.sample {
		out = append(out, h)
	}
	return out
}

// metaLessons names the row in the store. Version 1 is a byte for the version, then the weights of
// Model.Prior and Model.Start, and the Drift, as float64. Salt and limit follow. Then come for each
// history its hash, its length as a varint, and its bytes. All fixed-size numbers are big-endian.
// The row is written after each fit: a crash loses what was seen since then.
const (
	metaLessons    = "revisits"
	lessonsVersion = 1
)

// encode returns the stored form; the order of the histories is arbitrary.
func (l *lessons) encode() []byte {
	b := []byte{lessonsVersion}
	for _, w := range l.numbers() {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(*w))
	}
	b = binary.BigEndian.AppendUint64(b, l.salt)
	b = binary.BigEndian.AppendUint64(b, l.limit)
	for at, h := range l.sample {
		one := h.Append(nil)
		b = binary.BigEndian.AppendUint64(b, at)
		b = binary.AppendUvarint(b, uint64(len(one)))
		b = append(b, one...)
	}
	return b
}

// numbers returns the learned parts of the model, in the order in which they are stored.
func (l *lessons) numbers() []*float64 {
	all := make([]*float64, 0, 2*schedule.Rates+1)
	for _, belief := range []*schedule.Belief{&l.model.Prior, &l.model.Start} {
		for j := range belief {
			all = append(all, &belief[j])
		}
	}
	return append(all, &l.model.Drift)
}

// decodeLessons reads what encode wrote. It fails if the version, a length or the model is not
// valid.

func decodeLessons(b []byte) (*lessons, error) {
	l := newLessons()
	numbers := l.numbers()
	if len(b) == 0 || b[0] != lessonsVersion {
		return nil, errors.New("the learned rates are of another version")
	}
	if b = b[1:]; len(b) < 8*len(numbers)+16 {
		return nil, errors.New("what was learned is cut short")
	}
	for _, w := range numbers {
		*w = math.Float64frombits(binary.BigEndian.Uint64(b))
		b = b[8:]
	}
	if err := l.model.Validate(); err != nil {
		return nil, err
	}
	l.salt, l.limit, b = binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), b[16:]
	for len(b) > 0 {
		if len(b) < 8 {
			return nil, errors.New("half a history")
		}
		at := binary.BigEndian.Uint64(b)
		n, used := binary.Uvarint(b[8:])
		if b = b[8:]; used <= 0 || n > uint64(len(b)-used) || len(l.sample) == maxSample {
			return nil, errors.New("a history of no length, or too many")
		}
		h := new(schedule.History)
		if err := h.Decode(b[used : used+int(n)]); err != nil {
			return nil, err
		}
		l.sample[at], b = h, b[used+int(n):]
	}
	return l, nil
}

// loadLessons returns the lessons of the store. If there are none, or if they cannot be read, it
// returns new ones, and why then says the reason. err is the store's.
func loadLessons(s *db.Store) (l *lessons, why, err error) {
	b, err := s.Meta(metaLessons)
	if errors.Is(err, store.ErrNotExist) {
		return newLessons(), nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("crawler: %w", err)
	}
	if l, why = decodeLessons(b); why != nil {
		return newLessons(), fmt.Errorf("crawler: the learned rates of change start again: %w", why), nil
	}
	return l, nil, nil
}

// learn starts a fit of the model if one is due. The fit runs beside the fetches.
func (c *Crawler) learn() {
	r := c.revisits
	r.mu.Lock()
	sample := r.lessons.due(r.scaled(time.Now(), r.speed), r.interval)
	model := r.lessons.model
	r.mu.Unlock()
	if sample == nil {
		return
	}
	c.tasks.Go(func() {
		model = model.Fit(sample)
		r.mu.Lock()
		r.lessons.busy, r.lessons.model, r.budget.Model = false, model, model
		b := r.lessons.encode()
		r.mu.Unlock()
		if err := c.o.Store.SetMeta(metaLessons, b); err != nil {
			c.fail(fmt.Errorf("crawler: %w", err))
		}
	})
}
