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

// lessons is what this peer has learned of how its Keys change, all together: the
// model that decisions begin with, and the sample of histories that it is fitted
// to. A Key is in the sample by a salted hash of its name alone, so that what is
// looked at often is there no more than what is not. Not safe for concurrent use.
type lessons struct {
	model  schedule.Model
	salt   uint64
	limit  uint64                       // hashes in the sample are at most that
	sample map[uint64]*schedule.History // by hash; nobody changes them
	after  time.Time                    // of the next fit, in the time of revisits
	wait   float64                      // mean intervals between the last two
	busy   bool                         // a fit is under way
}

const (
	maxSample = 1000 // histories; when there are more, every second goes
	// The first fit is after fitFirst mean intervals, and each later one waits half as
	// long again: as in the contest of policies.
	fitFirst = 0.5
	fitLater = 1.5
)

func newLessons() *lessons {
	return &lessons{model: schedule.NewModel(), salt: rand.Uint64(), limit: math.MaxUint64,
		sample: map[uint64]*schedule.History{}}
}

// see takes in the history of k after a visit; h is not changed any more.
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

// mixed spreads a sum of FNV, whose high bits hardly differ between like names
// (the finaliser of MurmurHash3).
func mixed(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// due is the sample to fit the model to, nil when it is not time.
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

// metaLessons names what is kept in the store, version 1: a byte for the version,
// the weights of Model.Prior and Model.Start and its Drift as float64, salt and
// limit, then for each history its hash, its length as a varint, and itself. It is
// written after each fit: what was seen since then is lost with the process.
const (
	metaLessons    = "revisits"
	lessonsVersion = 1
)

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

// numbers are the learned parts of the model, in the order they are stored.
func (l *lessons) numbers() []*float64 {
	all := make([]*float64, 0, 2*schedule.Rates+1)
	for _, belief := range []*schedule.Belief{&l.model.Prior, &l.model.Start} {
		for j := range belief {
			all = append(all, &belief[j])
		}
	}
	return append(all, &l.model.Drift)
}

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

// loadLessons are those of the store, or none: what cannot be read is learned
// anew, with a word of why. The error is the store's.
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

// learn fits the model when it is time, apart from the fetches.
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
