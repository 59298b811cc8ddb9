package social

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Streams. A stream tells of posts as they are made, changed and deleted. What it says of an account is a word
// that waits in the memory of the peer that owns the account, has the account visited now (Ears.Hurry), and is taken
// by that visit, which asks nobody and commits it as any visit does. So records are written by one, in one batch with the
// Key (I3), at the slice's owner; no word goes from peer to peer, as each peer listens for its own accounts
// only, and a stream adds no call but the one that connects.
//
// A crash loses the words that were not taken. A stream with a cursor is read again from before the first of them: what
// it says twice is older than what is kept, and left out. Of one without, the next reading
// of the account has the posts, as it would have had without a stream.
//
// Nothing else rests on a stream. Accounts are read as ever, but four times more seldom those of which it told all that
// the readings before found (state.Trust). One that keeps silent, drops or repeats is so found out by the next reading; one that makes
// posts up is believed, as the server is whom the operator or the account chose.

// Ears is what Listen is given by the peer.
type Ears struct {
	Slices   func() []partition.Slice                             // those it may fetch in now
	Hurry    func(sl partition.Slice, keys []partition.Key) error // has Keys that are done visited now; an error ends Listen
	Hold     func() time.Duration                                 // for how long nothing may be asked, 0 = it may
	Received func(bytes int64)
}

// Of ears.
const (
	maxWords     = 16 << 20         // bytes of words that wait, of all accounts; a stream is read on when there is room
	wordWeight   = 512              // of a word, beside its text
	wordsOnce    = 200              // taken by one visit
	wordsWait    = 10 * time.Minute // a word that no visit takes for so long is lost: its account cannot be visited
	batch        = time.Second      // in which words that come are taken together
	urgeAgain    = time.Minute      // an account that was not visited is hurried again
	tendEvery    = 10 * time.Second // how often it is looked which slices are here, and whose words wait
	trustedAfter = 2                // readings in a row of which the stream had told all, and then
	trustedLess  = 4                // so many times more seldom is an account read
)

// word is what a stream said of an account.
type word struct {
	seq  uint64
	at   time.Time // by the stream
	came time.Time // by our clock
	size int
	tell func(v *visit) error // takes it into a visit of the account
	// ends: the account itself may have changed, and is looked up.
	ends bool
}

// heard is an account that is listened for.
type heard struct {
	slice partition.Slice
	since time.Time // its posts were read then
	asked bool      // the connection that there is, or was last, is about it
	on    time.Time // since when all that the stream says of it comes here; zero = not now
	lost  bool      // some words were
	words []word
	urged time.Time
}

// ears are whom this peer listens for, and the words that wait. Safe for concurrent use.
type ears struct {
	mu     sync.Mutex
	open   bool // some stream is read
	all    map[partition.Key]*heard
	size   int
	seq    uint64
	lost   int64
	room   chan struct{} // closed when some words were taken
	spoken chan struct{} // a word came: a hint
}

func newEars(open bool) *ears {
	return &ears{open: open, all: map[partition.Key]*heard{}, room: make(chan struct{}), spoken: make(chan struct{}, 1)}
}

// join listens for k, whose posts have been read at since.
func (e *ears) join(k partition.Key, sl partition.Slice, since time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.all[k]
	if h == nil {
		h = &heard{}
		e.all[k] = h
	}
	h.slice, h.since = sl, since
}

// leave listens for k no more.
func (e *ears) leave(k partition.Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drop(k)
}

func (e *ears) drop(k partition.Key) {
	if h := e.all[k]; h != nil {
		e.forget(h, len(h.words))
		delete(e.all, k)
	}
}

// forget drops the first n words of h.
func (e *ears) forget(h *heard, n int) {
	for _, w := range h.words[:n] {
		e.size -= w.size
	}
	if h.words = h.words[n:]; n > 0 {
		close(e.room)
		e.room = make(chan struct{})
	}
}

// hear takes a word about k, when there is room. Of who is not listened for it is dropped.
func (e *ears) hear(ctx context.Context, k partition.Key, w word) error {
	for {
		e.mu.Lock()
		h, room := e.all[k], e.room
		fits := h != nil && (e.size == 0 || e.size+w.size <= maxWords)
		if fits {
			e.seq++
			w.seq = e.seq
			h.words = append(h.words, w)
			e.size += w.size
		}
		e.mu.Unlock()
		if fits {
			select {
			case e.spoken <- struct{}{}:
			default:
			}
		}
		if h == nil || fits {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-room:
		}
	}
}

// words are those that wait for a visit of k, wordsOnce at most. lost: some were, since it was asked last.
func (e *ears) words(k partition.Key) (some []word, more, lost bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.all[k]
	if h == nil {
		return nil, false, false
	}
	n := min(len(h.words), wordsOnce)
	lost, h.lost = h.lost, false
	return slices.Clone(h.words[:n]), n < len(h.words), lost
}

// kept forgets the words about k up to one: what came of them is durable.
func (e *ears) kept(k partition.Key, last uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h := e.all[k]; h != nil {
		n := 0
		for n < len(h.words) && h.words[n].seq <= last {
			n++
		}
		e.forget(h, n)
	}
}

// since is from when on a stream told all it knows of k, zero = it does not now.
func (e *ears) since(k partition.Key) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h := e.all[k]; h != nil {
		return h.on
	}
	return time.Time{}
}

// ask says whom of a service a new connection is to be about, most at most, and from when on it is to tell. Who was
// asked for before is not in from: their words have been read up to the cursor.
func (e *ears) ask(of string, most int) (keys []partition.Key, from time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for k := range e.all {
		if k.Service() == of {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b partition.Key) int { // those first who were asked for, so that who is left out stays it
		return cmp.Or(yesFirst(e.all[a].asked, e.all[b].asked), cmp.Compare(a, b))
	})
	for _, k := range keys[min(most, len(keys)):] {
		e.all[k].asked, e.all[k].on = false, time.Time{}
	}
	keys = keys[:min(most, len(keys))]
	for _, k := range keys {
		h := e.all[k]
		if !h.asked && (from.IsZero() || h.since.Before(from)) {
			from = h.since
		}
		h.asked = true
	}
	return keys, from
}

func yesFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// news says whether there is somebody of a service to be asked for who is not yet.
func (e *ears) news(of string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for k, h := range e.all {
		if !h.asked && k.Service() == of {
			return true
		}
	}
	return false
}

// connected says that a stream tells of those that were asked for from now on; disconnected that for a
// while it did not.
func (e *ears) connected(of string, now time.Time) {
	e.each(of, func(h *heard) {
		if h.asked && h.on.IsZero() {
			h.on = now
		}
	})
}

func (e *ears) disconnected(of string) { e.each(of, func(h *heard) { h.on = time.Time{} }) }

// missed says that what a stream told for a while cannot be had.
func (e *ears) missed(of string) {
	e.each(of, func(h *heard) { h.on, h.lost = time.Time{}, true })
}

func (e *ears) each(of string, do func(*heard)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for k, h := range e.all {
		if k.Service() == of {
			do(h)
		}
	}
}

// oldest is the time of the first word about a service that waits, zero = none does.
func (e *ears) oldest(of string) (at time.Time) {
	e.each(of, func(h *heard) {
		for _, w := range h.words {
			if at.IsZero() || w.at.Before(at) {
				at = w.at
			}
		}
	})
	return at
}

// counted is how many accounts of a service are asked for, and how many words were lost of all.
func (e *ears) counted(of string) (asked int, lost int64) {
	e.each(of, func(h *heard) {
		if h.asked {
			asked++
		}
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	return asked, e.lost
}

// urge gives the accounts that have words and are to be visited now, and loses what waited too long.
func (e *ears) urge(now time.Time) map[partition.Slice][]partition.Key {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := map[partition.Slice][]partition.Key{}
	for k, h := range e.all {
		old := 0
		for old < len(h.words) && now.Sub(h.words[old].came) >= wordsWait {
			old++
		}
		if old > 0 {
			e.lost += int64(old)
			h.lost, h.on = true, time.Time{}
			e.forget(h, old)
		}
		if len(h.words) > 0 && now.Sub(h.urged) >= urgeAgain || len(h.words) > 0 && h.words[len(h.words)-1].came.After(h.urged) {
			h.urged = now
			out[h.slice] = append(out[h.slice], k)
		}
	}
	return out
}

// keep leaves the accounts of slices that are not here any more.
func (e *ears) keep(here map[partition.Slice]bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for k, h := range e.all {
		if !here[h.slice] {
			e.drop(k)
		}
	}
}

// tend has accounts that a stream told of visited, and listens for those of the slices that come, until ctx ends.
func (s *Source) tend(ctx context.Context, o Ears) error {
	here := map[partition.Slice]bool{}
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	for {
		is := map[partition.Slice]bool{}
		for _, sl := range o.Slices() {
			is[sl] = true
			if here[sl] {
				continue
			}
			if err := s.listenIn(sl); err != nil {
				return err
			}
		}
		here = is
		s.ears.keep(here)
		for sl, keys := range s.ears.urge(s.o.Now()) {
			if err := o.Hurry(sl, keys); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		case <-s.ears.spoken:
			if err := fetch.Sleep(ctx, batch); err != nil { // those that come together
				return err
			}
		}
	}
}

// listenIn listens for those accounts of a slice that are followed, as their states say.
func (s *Source) listenIn(sl partition.Slice) error {
	for _, of := range s.streamed() {
		var keys []partition.Key
		err := s.o.Store.SliceRecords(sl, partition.Key(of+":!"), func(r store.Record) (bool, error) {
			if r.Key.Service() != of {
				return false, nil
			}
			if r.Kind == store.KindProfile {
				keys = append(keys, r.Key)
			}
			return true, nil
		})
		if err != nil {
			return err
		}
		for _, k := range keys {
			b, err := s.o.Store.Checkpoint(sl, k)
			if err != nil && !errors.Is(err, store.ErrNotExist) {
				return err
			}
			if st, err := decodeState(b); err == nil && !st.Poll.IsZero() {
				s.ears.join(k, sl, st.Visited)
			}
		}
	}
	return nil
}

// hear takes what streams said of the account. It says whether the visit ends with that, as it is not yet time
// to ask its server.
func (v *visit) hear() (ends bool, err error) {
	k := v.t.Due.Key
	if !v.s.ears.open || k.Kind() != partition.KindAccount || v.st.Poll.IsZero() {
		return false, nil
	}
	some, more, lost := v.s.ears.words(k)
	look := false
	for _, w := range some {
		if v.told = w.at; v.told.After(v.now) {
			v.told = v.now
		}
		if err := w.tell(v); err != nil {
			return false, &storeError{err}
		}
		look = look || w.ends
	}
	v.told = time.Time{}
	if len(some) > 0 {
		v.res.Kept = func() { v.s.ears.kept(k, some[len(some)-1].seq) }
	}
	if lost {
		v.gap(store.GapIncomplete, "what a stream told for a while was not had: what was edited or deleted of older posts may not be known")
	}
	if look && v.now.Sub(v.st.Looked) >= v.s.o.Least { // and so no stream has it asked for more often
		v.st.Profiled = time.Time{}
		return false, nil
	}
	if !v.st.Poll.After(v.now) && !more {
		return false, nil
	}
	v.res.Next = store.Next{State: store.StateDone, At: v.st.Poll, Reason: v.t.Due.Reason}
	if more {
		v.res.Next.At = v.now
	}
	v.heardOnly = true
	return true, nil
}

// news says whether what a stream tells of a post is later than what is kept of it, and what that is.
func (v *visit) news(uri string) (had *store.Record, later bool, err error) {
	for i := range slices.Backward(v.res.Posts) {
		if v.res.Posts[i].Post == uri {
			return &v.res.Posts[i], true, nil
		}
	}
	r, _, err := v.s.o.Store.Post(v.t.Due.Key, uri)
	if errors.Is(err, store.ErrNotExist) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	return &r, v.told.After(r.FetchedAt), nil
}

// unsaid makes a tombstone of a post that a stream says was deleted, when it is kept. id is what the Mark calls it: a
// reading need not miss it any more.
func (v *visit) unsaid(uri, id string) error {
	had, later, err := v.news(uri)
	if err != nil || had == nil || had.Deleted || !later {
		return err
	}
	r := v.tombstone(uri, id)
	r.FetchedAt = v.told
	v.res.Posts = append(v.res.Posts, r)
	for _, m := range v.st.marks() {
		if left := slices.DeleteFunc(slices.Clone(m.Recent), func(s service.Seen) bool { return s.ID == id }); len(left) > 0 {
			m.Recent = left
		}
	}
	return nil
}

// proved holds the posts that a reading found new against what the stream had told.
func (v *visit) proved() error {
	on := v.s.ears.since(v.t.Due.Key)
	if on.IsZero() {
		return nil
	}
	for _, i := range v.novel {
		r := &v.res.Posts[i]
		if r.PublishedAt == nil || !r.PublishedAt.After(on) || r.PublishedAt.After(v.now.Add(-time.Minute)) {
			continue
		}
		_, _, err := v.s.o.Store.Post(v.t.Due.Key, r.Post)
		switch {
		case err == nil || v.toldOf[r.Post]:
			v.foretold++
		case errors.Is(err, store.ErrNotExist):
			v.untold++
		default:
			return &storeError{err}
		}
	}
	return nil
}

// trust is after a whole reading.
func (v *visit) trust() error {
	if err := v.proved(); err != nil {
		return err
	}
	switch {
	case v.untold > 0:
		v.st.Trust = 0
	case v.foretold > 0:
		v.st.Trust = min(v.st.Trust+1, trustedAfter)
	}
	return nil
}

// listen says to the ears how the account stands after this visit.
func (v *visit) listen() error {
	k := v.t.Due.Key
	switch {
	case !v.s.ears.open || k.Kind() != partition.KindAccount || v.heardOnly:
		return nil
	case v.st.Poll.IsZero():
		v.s.ears.leave(k)
		return nil
	}
	sl, err := v.s.o.Store.Where(k)
	if err != nil {
		return err
	}
	v.st.Poll = v.res.Next.At
	v.s.ears.join(k, sl, v.st.Visited)
	return nil
}

// trusted says whether the stream need be held against readings only now and then.
func (v *visit) trusted() bool {
	return v.st.Trust >= trustedAfter && !v.s.ears.since(v.t.Due.Key).IsZero()
}

// nobody says whether there is nobody of a service to listen for.
func (e *ears) nobody(of string) bool {
	none := true
	e.each(of, func(*heard) { none = false })
	return none
}
