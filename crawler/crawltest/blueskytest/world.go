package blueskytest

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest/storytest"
)

type (
	person = storytest.Person
	post   = storytest.Post
	follow = storytest.Follow
)

// The collections of records.
const (
	posts   = "app.bsky.feed.post"
	reposts = "app.bsky.feed.repost"
	follows = "app.bsky.graph.follow"
)

// World is one simulated network. It is safe for concurrent use.
type World struct {
	*storytest.Story
	o        Options
	meter    *storytest.Meter
	report   storytest.Report
	byHandle map[string]*person
	events   []event
	revs     map[*person]uint64 // number of writes to the repository

	subscriptions int
}

// event is one line of the Jetstream.
type event struct {
	micros int64
	h      storytest.Happening
	rev    uint64
}

// New returns a World at Options.Start.
func New(o Options) (*World, error) {
	if o.Domain == "" {
		o.Domain = "b.test"
	}
	web := o.PDS == ""
	if web {
		o.PDS = "https://pds." + o.Domain
	}
	if o.Says == storytest.ISO {
		o.Says = storytest.Draft
	}
	if o.Mute {
		o.Says = storytest.NoHeaders
	}
	w := &World{o: o, byHandle: map[string]*person{}, revs: map[*person]uint64{}}
	var worst, err error
	w.meter, worst = storytest.NewMeter(o.Limits, o.Says, storytest.AfterSeconds)
	w.Story, err = storytest.New(storytest.Options{
		Seed: o.Seed, People: o.People, Remote: -1, Start: o.Start, Clock: o.Clock, Rate: o.Rate, Quiet: o.Quiet,
		Domain:   o.Domain,
		PersonID: func(p *person, _ uint64) string { return didOf(o.Seed, p.N, web) },
		PostID: func(p *post) string {
			collection := posts
			if p.Boost != nil {
				collection = reposts
			}
			return "at://" + p.By.ID + "/" + collection + "/" + tid(p.Serial)
		},
		Late: func(p *post) time.Duration {
			if p.Serial%3 == 0 {
				return w.o.Lies.Late
			}
			return 0
		},
		Heard: w.heard,
	})
	if err := errors.Join(worst, err); err != nil {
		return nil, fmt.Errorf("blueskytest: %w", err)
	}
	for _, p := range w.People {
		w.byHandle[w.handle(p)] = p
	}
	return w, nil
}

// Lie changes how the servers behave from now on.
func (w *World) Lie(change func(*Lies)) {
	w.Lock()
	defer w.Unlock()
	change(&w.o.Lies)
}

// heard records an event for the Jetstream. It makes all times different, as in the real one.
func (w *World) heard(h storytest.Happening) {
	w.revs[h.Who]++
	micros := h.At.UnixMicro()
	if n := len(w.events); n > 0 && micros <= w.events[n-1].micros {
		micros = w.events[n-1].micros + 1
	}
	w.events = append(w.events, event{micros, h, w.revs[h.Who]})
}

// didOf returns the DID of person n. It is a did:plc; if web is set, every tenth is a did:web.
func didOf(seed uint64, n int, web bool) string {
	if web && n%10 == 9 {
		return fmt.Sprintf("did:web:web%d.test", n)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d person %d", seed, n))
	return "did:plc:" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:15]))
}

// tid returns a serial as a record key: microseconds and a clock number in base 32, in order.
func tid(serial uint64) string {
	const digits = "234567abcdefghijklmnopqrstuvwxyz"
	x := (serial>>16)*1000*1024 + serial&0xffff
	b := make([]byte, 13)
	for i := len(b) - 1; i >= 0; i, x = i-1, x/32 {
		b[i] = digits[x%32]
	}
	return string(b)
}

// followURI returns the URI of the record of a follow.
func followURI(p *person, f follow) string {
	return "at://" + p.ID + "/" + follows + "/" + tid(uint64(f.At.UnixMilli())<<16+f.Row&0xffff)
}

// key returns the record key of a URI.
func key(uri string) string { return uri[strings.LastIndexByte(uri, '/')+1:] }

// cid returns a string that identifies the content of a record, in place of a real CID.
func cid(parts ...any) string {
	sum := sha256.Sum256([]byte(fmt.Sprintln(parts...)))
	return "bafyrei" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

// version returns the CID of version n of a post.
func version(p *post, n int) string {
	if p.Boost != nil {
		return cid(p.ID, p.Boost.ID)
	}
	return cid(p.ID, p.Versions[n].Text)
}

func (w *World) handle(p *person) string { return p.User + "." + w.o.Domain }

// kept reports whether the record of p is in its repository. This does not depend on what the
// AppView shows.
func kept(p *post) bool { return !p.Deleted }
