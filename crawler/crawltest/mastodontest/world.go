package mastodontest

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/storytest"
)

type (
	person = storytest.Person
	post   = storytest.Post
	follow = storytest.Follow
)

// World is one simulated server. It is safe for concurrent use.
type World struct {
	*storytest.Story
	o       Options
	meter   *storytest.Meter
	report  storytest.Report
	batches int
	streams int // attempts
	readers int // open now

	happened []storytest.Happening // for streams
}

// New returns a World at Options.Start.
func New(o Options) (*World, error) {
	o = o.withDefaults()
	w := &World{o: o}
	var worst, err error
	w.meter, worst = storytest.NewMeter(o.Limits, o.Says, o.After)
	w.Story, err = storytest.New(storytest.Options{
		Seed: o.Seed, People: o.People, Remote: o.Remote, Start: o.Start, Clock: o.Clock, Rate: o.Rate, Quiet: o.Quiet,
		Domain:   o.Domain,
		PersonID: func(p *person, serial uint64) string { return w.ident(serial, fmt.Sprint("person", p.N)) },
		PostID:   func(p *post) string { return w.ident(p.Serial, p.By.ID) },
		Late: func(p *post) time.Duration {
			if p.Serial%3 == 0 {
				return w.o.Lies.Late
			}
			return 0
		},
		Edited: func(p *post) {
			if w.o.Lies.EditRenames {
				p.ID = w.ident(p.Serial+uint64(len(p.Versions)), p.By.ID)
				w.Posts[p.ID] = p
			}
		},
		Heard: func(h storytest.Happening) { w.happened = append(w.happened, h) },
	})
	if err := errors.Join(worst, err); err != nil {
		return nil, fmt.Errorf("mastodontest: %w", err)
	}
	return w, nil
}

// Lie changes how the server behaves from now on.
func (w *World) Lie(change func(*Lies)) {
	w.Lock()
	defer w.Unlock()
	change(&w.o.Lies)
}

// Expire makes the server reject token from now on.
func (w *World) Expire(token string) {
	w.Lock()
	defer w.Unlock()
	w.o.Tokens = maps.Clone(w.o.Tokens)
	delete(w.o.Tokens, token)
}

// ident returns the ID for a serial, in the form of Options.IDs.
func (w *World) ident(serial uint64, salt string) string {
	switch w.o.IDs {
	case ULIDs:
		const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
		b := []byte("01000000000000000000000000")
		for i, x := len(b)-1, serial; i > 1 && x > 0; i, x = i-1, x/32 {
			b[i] = digits[x%32]
		}
		return string(b)
	case Hashes:
		sum := md5.Sum([]byte(salt + strconv.FormatUint(serial, 10)))
		return hex.EncodeToString(sum[:])
	}
	return strconv.FormatUint(serial, 10)
}
