package zone

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/echo-node/echo-node/dht/member"
	"github.com/echo-node/echo-node/partition"
)

// lists has this peer's memberships: the list of its zone and, during a split, the wider list of
// the zone before. The View is the union of both, so that this peer can send slices to members of
// the other half. All methods are safe for concurrent use.
type lists struct {
	open     func(partition.Zone, partition.Member, func(peer.ID) bool) (*member.List, error)
	views    chan partition.View
	changed  func(partition.View) // called with each new View, one at a time, before it is sent
	contacts chan peer.ID
	running  sync.WaitGroup

	entering chan struct{} // capacity 1, full while the lists change; no mutex, for synctest's fake clock
	sending  sync.Mutex    // held while one View goes into views
	sent     uint64        // digest of the last View sent

	mu         sync.Mutex // never held while calling a List
	closed     bool
	zone       partition.Zone
	own, wider *member.List
	since      time.Time // when own became the own list
	// parted has the members of the zone that the wider list knew when this peer left it. Those
	// that are not in the View count as gone, so that the joiner looks for them.
	parted map[string]member.Gone
}

// newLists opens the list of the undivided zone. open opens the list of a zone; its last argument is
// Options.Elsewhere of package member.
func newLists(self partition.Member, open func(partition.Zone, partition.Member, func(peer.ID) bool) (*member.List,
	error),
	changed func(partition.View)) (*lists, error) {
	l := &lists{open: open, changed: changed, views: make(chan partition.View, 1), contacts: make(chan peer.ID, 64),
		entering: make(chan struct{}, 1), zone: partition.HashZone}
	own, err := open(l.zone, self, l.elsewhere)
	if err != nil {
		return nil, err
	}
	l.own, l.since = own, time.Now()
	l.follow(own)
	return l, nil
}

// follow passes on Views and contacts of a List until the List is closed.
func (l *lists) follow(list *member.List) {
	l.running.Go(func() {
		for {
			select {
			case _, more := <-list.Views():
				if !more {
					return
				}
				l.publish()
			case p := <-list.Contacts():
				select {
				case l.contacts <- p:
				default: // it will contact us again
				}
			}
		}
	})
}

// publish sends the present View to views, unless it is the same as the last one.
func (l *lists) publish() {
	l.sending.Lock()
	defer l.sending.Unlock()
	l.mu.Lock()
	closed := l.closed
	l.mu.Unlock()
	v := l.View()
	// Both lists report changes, and their union may still be the same.
	if closed || v.Digest() == l.sent {
		return
	}
	l.sent = v.Digest()
	l.changed(v)
	select {
	case <-l.views: // the reader is slow: replace the View that it has not read
	default:
	}
	l.views <- v // does not block, because sending is held
}

// both returns the two lists. wider is nil outside a split.
func (l *lists) both() (own, wider *member.List) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.own, l.wider
}

// each returns the existing lists, the own one last.
func (l *lists) each() []*member.List {
	own, wider := l.both()
	if wider == nil {
		return []*member.List{own}
	}
	return []*member.List{wider, own}
}

// elsewhere reports whether p, which one of two lists lost, is a member in the View of both.
func (l *lists) elsewhere(p peer.ID) bool {
	// There is only one list, so the peer is in no other.
	if _, wider := l.both(); wider == nil {
		return false
	}
	_, ok := l.View().Find(p.String())
	return ok
}

// at returns the zone of the own list, and the time since when it is that.
func (l *lists) at() (partition.Zone, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.zone, l.since
}

// View returns the union of the two Views. If both have a member, the entry of the own list counts.
func (l *lists) View() partition.View {
	own, wider := l.both()
	if wider == nil {
		return own.View()
	}
	ms := append([]partition.Member(nil), wider.View().Members()...)
	return partition.NewView(append(ms, own.View().Members()...))
}

// Views delivers each new View. Close closes it.
func (l *lists) Views() <-chan partition.View { return l.views }

// Contacts delivers peers that contacted this one and are no members.
func (l *lists) Contacts() <-chan peer.ID { return l.contacts }

// Gone returns the members that are in no list any more, by id.
func (l *lists) Gone() map[string]member.Gone {
	out := map[string]member.Gone{}
	for _, list := range l.each() {
		for id, g := range list.Gone() {
			out[id] = g
		}
	}
	l.mu.Lock()
	for id, g := range l.parted {
		if _, known := out[id]; !known && time.Since(g.Since) < partedLife {
			out[id] = g
		}
	}
	l.mu.Unlock()
	// A member of one list may be gone from the other.
	for _, m := range l.View().Members() {
		delete(out, m.ID)
	}
	return out
}

// partedLife is how long this peer looks for members of its zone that it lost in a split.
const partedLife = time.Hour

// part notes the members of the zone that wider knows, also vanished ones.
func (l *lists) part(wider *member.List) {
	zone, _ := l.at()
	now := time.Now()
	parted := map[string]member.Gone{}
	for _, m := range wider.View().Members() {
		parted[m.ID] = member.Gone{Member: m, Since: now}
	}
	// Those that vanished may be cut off, so they are looked for, too.
	for id, g := range wider.Gone() {
		if g.Left && g.Member.ZoneDepth < zone.Depth() {
			continue // it left the swarm, and did not go ahead into the half
		}
		parted[id] = member.Gone{Member: g.Member, Since: now}
	}
	for id := range parted {
		if !zone.HasPeer(id) {
			delete(parted, id)
		}
	}
	l.mu.Lock()
	l.parted = parted
	l.mu.Unlock()
}

// Sealed returns the descriptor of a member as the member sealed it, or nil for other peers. Do not
// modify.
func (l *lists) Sealed(id string) []byte {
	var out []byte
	for _, list := range l.each() {
		if b := list.Sealed(id); b != nil {
			out = b
		}
	}
	return out
}

// Join exchanges the membership of the zone with p. It returns the number of peers reached.
func (l *lists) Join(ctx context.Context, p peer.ID) (int, error) {
	own, _ := l.both()
	return own.Join(ctx, p)
}

// Update changes what this peer declares about itself in every list.
func (l *lists) Update(m partition.Member) error {
	var errs []error
	for _, list := range l.each() {
		errs = append(errs, list.Update(m))
	}
	return errors.Join(errs...)
}

// Stats returns the counters of the own list.
func (l *lists) Stats() member.Stats {
	own, _ := l.both()
	return own.Stats()
}

// Leave says goodbye in every list.
func (l *lists) Leave(ctx context.Context) error {
	var errs []error
	for _, list := range l.each() {
		errs = append(errs, list.Leave(ctx))
	}
	return errors.Join(errs...)
}

// Close closes every list and waits for their goroutines. A second call does nothing.
func (l *lists) Close() error {
	l.mu.Lock()
	closed := l.closed
	l.closed = true
	l.mu.Unlock()
	if closed {
		return nil
	}
	l.entering <- struct{}{} // wait for a change of the lists in progress
	defer func() { <-l.entering }()
	var errs []error
	for _, list := range l.each() {
		errs = append(errs, list.Close())
	}
	l.running.Wait()
	l.sending.Lock()
	defer l.sending.Unlock()
	close(l.views)
	return errors.Join(errs...)
}

// enter makes zone the zone of this peer. self is what the peer declares about itself there. With
// keep, the list of the zone before stays as the wider one. Without keep, it is closed: a peer that
// is alone has no other member there. During a split, enter does nothing.
func (l *lists) enter(zone partition.Zone, self partition.Member, keep bool) error {
	l.entering <- struct{}{}
	defer func() { <-l.entering }()
	l.mu.Lock()
	// A second split at once, or one after Close, is no error: Run tries again later.
	busy := l.closed || l.wider != nil || l.zone == zone
	before := l.own
	l.mu.Unlock()
	if busy {
		return nil
	}
	list, err := l.open(zone, self, l.elsewhere)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.own, l.zone, l.since = list, zone, time.Now()
	if keep {
		l.wider = before
	}
	l.mu.Unlock()
	l.follow(list)
	if keep {
		err = before.Update(self)
	} else {
		err = before.Close()
	}
	l.publish()
	return err
}

// narrow leaves the wider list and closes it. Without one it does nothing.
func (l *lists) narrow(ctx context.Context) error {
	l.entering <- struct{}{}
	defer func() { <-l.entering }()
	l.mu.Lock()
	wider := l.wider
	if wider == nil || l.closed { // if closed, Close closes the wider list
		l.mu.Unlock()
		return nil
	}
	l.wider = nil
	l.mu.Unlock()
	// Note them before Leave, because afterwards the wider list no longer follows the zone.
	l.part(wider)
	err := wider.Leave(ctx)
	err = errors.Join(err, wider.Close())
	l.publish()
	return err
}
