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

// lists are this peer's memberships: the list of its zone and, after a split
// until everything is handed over, the list of the zone before, the wider one.
// The View is the union of both, so that what has to go to the other half can be
// sent there. All methods are safe for concurrent use.
type lists struct {
	open     func(partition.Zone, partition.Member, func(peer.ID) bool) (*member.List, error)
	views    chan partition.View
	changed  func(partition.View) // told of each new View, one at a time, before it is sent
	contacts chan peer.ID
	running  sync.WaitGroup

	entering chan struct{} // cap 1, full while the lists change: no mutex, since it is waited for in fake time
	sending  sync.Mutex    // one View at a time goes into views
	sent     uint64        // its digest

	mu         sync.Mutex // never held while calling a List
	closed     bool
	zone       partition.Zone
	own, wider *member.List
	since      time.Time // of own
	// parted are members of the zone that only the wider list knew when it was
	// left: to be found again, so they count as gone.
	parted map[string]member.Gone
}

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

// follow passes on what a List says until it is closed.
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
				default: // it will speak again
				}
			}
		}
	})
}

func (l *lists) publish() {
	l.sending.Lock()
	defer l.sending.Unlock()
	l.mu.Lock()
	closed := l.closed
	l.mu.Unlock()
	v := l.View()
	if closed || v.Digest() == l.sent {
		return
	}
	l.sent = v.Digest()
	l.changed(v)
	select {
	case <-l.views: // the reader is slow: replace what it has not taken
	default:
	}
	l.views <- v // cannot block: sending is held
}

// both gives the lists as they are; wider may be nil.
func (l *lists) both() (own, wider *member.List) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.own, l.wider
}

// each are the lists that there are, the own one last.
func (l *lists) each() []*member.List {
	own, wider := l.both()
	if wider == nil {
		return []*member.List{own}
	}
	return []*member.List{wider, own}
}

// elsewhere says whether p, lost to one of two lists, is in the other.
func (l *lists) elsewhere(p peer.ID) bool {
	if _, wider := l.both(); wider == nil {
		return false
	}
	_, ok := l.View().Find(p.String())
	return ok
}

// at is the zone of the own list, and since when it is that.
func (l *lists) at() (partition.Zone, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.zone, l.since
}

// View is the union of the Views; what the own list says of a member counts.
func (l *lists) View() partition.View {
	own, wider := l.both()
	if wider == nil {
		return own.View()
	}
	ms := append([]partition.Member(nil), wider.View().Members()...)
	return partition.NewView(append(ms, own.View().Members()...))
}

// Views delivers each new View; Close closes it.
func (l *lists) Views() <-chan partition.View { return l.views }

// Contacts gives peers that spoke to this one and are no members.
func (l *lists) Contacts() <-chan peer.ID { return l.contacts }

// Gone are the members that are in no list any more.
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
	for _, m := range l.View().Members() {
		delete(out, m.ID)
	}
	return out
}

// partedLife is how long members that a split lost are looked for.
const partedLife = time.Hour

// part notes whom of the zone only the wider list knows.
func (l *lists) part(wider *member.List) {
	zone, _ := l.at()
	now := time.Now()
	parted := map[string]member.Gone{}
	for _, m := range wider.View().Members() {
		parted[m.ID] = member.Gone{Member: m, Since: now}
	}
	for id, g := range wider.Gone() {
		if g.Left && g.Member.ZoneDepth < zone.Depth() {
			continue // it left for good, not into the half
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

// Sealed is the descriptor of a member as it sealed it, nil of others.
func (l *lists) Sealed(id string) []byte {
	var out []byte
	for _, list := range l.each() {
		if b := list.Sealed(id); b != nil {
			out = b
		}
	}
	return out
}

// Join exchanges the membership of the zone with p.
func (l *lists) Join(ctx context.Context, p peer.ID) (int, error) {
	own, _ := l.both()
	return own.Join(ctx, p)
}

// Update changes what this peer says of itself in every list.
func (l *lists) Update(m partition.Member) error {
	var errs []error
	for _, list := range l.each() {
		errs = append(errs, list.Update(m))
	}
	return errors.Join(errs...)
}

// Stats are those of the own list.
func (l *lists) Stats() member.Stats {
	own, _ := l.both()
	return own.Stats()
}

// Leave says good-bye in every list.
func (l *lists) Leave(ctx context.Context) error {
	var errs []error
	for _, list := range l.each() {
		errs = append(errs, list.Leave(ctx))
	}
	return errors.Join(errs...)
}

// Close closes every list and waits.
func (l *lists) Close() error {
	l.mu.Lock()
	closed := l.closed
	l.closed = true
	l.mu.Unlock()
	if closed {
		return nil
	}
	l.entering <- struct{}{} // a change of lists that is under way ends first
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

// enter makes zone the zone of this peer, which says self of itself there. With
// keep the list of the zone before stays as the wider one, else it is closed: a
// peer that is alone has nobody there. A peer between two zones enters no third.
func (l *lists) enter(zone partition.Zone, self partition.Member, keep bool) error {
	l.entering <- struct{}{}
	defer func() { <-l.entering }()
	l.mu.Lock()
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

// narrow leaves the wider list, if there is one.
func (l *lists) narrow(ctx context.Context) error {
	l.entering <- struct{}{}
	defer func() { <-l.entering }()
	l.mu.Lock()
	wider := l.wider
	if wider == nil || l.closed { // Close closes it
		l.mu.Unlock()
		return nil
	}
	l.wider = nil
	l.mu.Unlock()
	l.part(wider)
	err := wider.Leave(ctx)
	err = errors.Join(err, wider.Close())
	l.publish()
	return err
}
