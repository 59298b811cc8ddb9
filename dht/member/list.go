package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

// List is the live membership of one zone as this peer sees it. All methods are safe for
// concurrent use.
type List struct {
	opts      Options
	log       *slog.Logger
	self      peer.ID
	ml        *memberlist.Memberlist
	transport *transport

	views    chan partition.View
	contacts chan peer.ID
	wake     chan struct{} // cap 1: members changed
	gossip   chan struct{} // cap 1: our own descriptor changed
	differ   chan peer.ID  // cap 1: this member has another View
	stop     chan struct{}
	wg       sync.WaitGroup
	once     sync.Once
	// cap 1, full while memberlist says goodbye: a shutdown at the same time would panic
	leaving chan struct{}

	mu sync.Mutex // never held while calling memberlist or libp2p
	// sealed is our own descriptor as it is sent, and own is the same before it was sealed
	sealed []byte
	own    wire.Descriptor
	floor  uint64 // highest sequence of our own that was ever seen
	// by name: the live members with our own entry, the last accepted descriptors, and the members
	// that are gone
	members map[string]wire.Descriptor
	checked map[string]checked
	gone    map[string]Gone
	lost    []peer.ID         // gone since the last publish; their connections must be closed
	news    []wire.Descriptor // joined or changed since the last publish
	view    partition.View
	viewAt  time.Time // when it last changed
	// numbers of descriptors refused, and of those that were too old
	bad, old uint64
}

// New starts the membership. At first this peer is alone; see Join.
func New(o Options) (*List, error) {
	if err := o.fill(); err != nil {
		return nil, fmt.Errorf("new member list: %w", err)
	}
	l := &List{opts: o, log: o.Logger, self: o.Host.ID(),
		views: make(chan partition.View, 1), contacts: make(chan peer.ID, 64),
		wake: make(chan struct{}, 1), gossip: make(chan struct{}, 1), differ: make(chan peer.ID, 1),
		stop: make(chan struct{}), leaving: make(chan struct{}, 1),
		members: map[string]wire.Descriptor{}, checked: map[string]checked{}, gone: map[string]Gone{}}
	l.own.Member = o.Self
	if err := l.seal(); err != nil {
		return nil, fmt.Errorf("new member list: %w", err)
	}
	l.transport = newTransport(o.Host, o.Prefix, l.contact, l.isMember)
	ml, err := memberlist.Create(l.config())
	if err != nil {
		return nil, fmt.Errorf("new member list: %w", errors.Join(err, l.transport.Shutdown()))
	}
	l.ml = ml
	l.publish()
	l.wg.Add(3)
	go l.settle()
	go l.watch()
	go l.announce()
	return l, nil
}

// config returns memberlist's configuration. The comments give the reason where it differs from the
// default.
func (l *List) config() *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.Name = l.self.String()
	c.RequireNodeNames = true
	c.Transport = l.transport
	c.UDPBufferSize = MaxPacket / 2 // no datagrams, so no MTU: several descriptors in one packet
	c.EnableCompression = false     // vetPacket refuses compressed packets
	c.ProbeInterval = l.opts.ProbeInterval
	c.ProbeTimeout = l.opts.ProbeTimeout
	c.SuspicionMult = l.opts.SuspicionMult
	c.SuspicionMaxTimeoutMult = 2
	c.RetransmitMult = 8         // a refutation that misses a peer causes a false death
	c.AwarenessMaxMultiplier = 3 // several deaths at once do not mean that this peer is slow
	c.PushPullInterval = l.opts.PushPull
	c.GossipToTheDeadTime = 30 * time.Second
	c.Delegate, c.Events, c.Alive, c.Ping = delegate{l}, delegate{l}, delegate{l}, delegate{l}
	c.LogOutput, c.Logger = nil, newLogger(l.log)
	return c
}

// contact records that p sent something though it is no member. After a restart the others may
// know this peer while it knows none of them.
func (l *List) contact(p peer.ID) {
	l.mu.Lock()
	_, known := l.members[p.String()]
	l.mu.Unlock()
	if known {
		return
	}
	select {
	case l.contacts <- p:
	default:
	}
}

// isMember reports whether the peer with this id is a live member.
func (l *List) isMember(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.members[id]
	return ok
}

// Contacts returns peers that sent something to this one and are no members. The caller passes
// them to Join.
func (l *List) Contacts() <-chan peer.ID { return l.contacts }

// Join exchanges the membership with each of the peers and returns how many responded. The host
// must know their addresses or be connected to them. The error is nil if one peer responded.
// Join returns early when ctx ends.
func (l *List) Join(ctx context.Context, peers ...peer.ID) (int, error) {
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	names := make([]string, 0, len(peers))
	for _, p := range peers {
		if p != l.self {
			names = append(names, joinName(p))
		}
	}
	if len(names) == 0 {
		return 0, errors.New("join: nobody to join")
	}
	if !l.start(func() {
		n, err := l.ml.Join(names)
		done <- result{n, err}
	}) {
		return 0, errors.New("join: closed")
	}
	select {
	case r := <-done:
		if r.err != nil {
			return r.n, fmt.Errorf("join: %w", r.err)
		}
		return r.n, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("join: %w", ctx.Err())
	}
}

// start runs f in a goroutine that Close waits for. It returns false after Close.
func (l *List) start(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.stop:
		return false
	default:
	}
	l.wg.Add(1)
	go func() {
		defer l.wg.Done()
		f()
	}()
	return true
}

// Update changes what this peer declares about itself and gossips it, if it is new. The caller
// must not change m afterwards. The ID of m is ignored.
func (l *List) Update(m partition.Member) error {
	l.mu.Lock()
	same := reflect.DeepEqual(l.own.Member, m)
	l.own.Member = m
	l.mu.Unlock()
	if same {
		return nil
	}
	if err := l.seal(); err != nil {
		return fmt.Errorf("update member: %w", err)
	}
	notify(l.gossip)
	return nil
}

// Self returns this peer's own entry, as the others read it.
func (l *List) Self() partition.Member {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.members[l.self.String()].Member
}

// seal signs the current descriptor with a new sequence: the clock in milliseconds, or one more
// than the highest sequence ever seen.
func (l *List) seal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.floor = max(l.floor+1, uint64(time.Now().UnixMilli()))
	l.own.Sequence = l.floor
	sealed, err := l.own.Seal(l.opts.Key, l.opts.Space, memberlist.MetaMaxSize)
	if err != nil {
		return err
	}
	l.sealed = sealed
	return nil
}

// View returns the newest View, which includes this peer.
func (l *List) View() partition.View {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.view
}

// Views delivers Views in order. A slow reader misses some Views, but never the newest. Close
// closes the channel.
func (l *List) Views() <-chan partition.View { return l.views }

// Gone returns the members that were in a View of the last day and are in none now.
func (l *List) Gone() map[string]Gone {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[string]Gone, len(l.gone))
	for id, g := range l.gone {
		out[id] = g
	}
	return out
}

// Stats returns the counters so far.
func (l *List) Stats() Stats {
	t := &l.transport.traffic
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{PacketsIn: t.packetsIn.Load(), PacketsOut: t.packetsOut.Load(), BytesIn: t.bytesIn.Load(),
		BytesOut: t.bytesOut.Load(), Dropped: t.dropped.Load(), Refused: t.refused.Load(),
		DeathClaims: l.transport.accusers.all(), BadDescriptors: l.bad, StaleDescriptors: l.old,
		Health: l.ml.GetHealthScore()}
}

// Leave says goodbye: the others remove this peer from their Views at once. The caller must
// still close the List.
func (l *List) Leave(ctx context.Context) error {
	l.mu.Lock()
	l.own.Leaving = true
	l.mu.Unlock()
	if err := l.seal(); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	// The time is divided: one half for the descriptor with Leaving, and one half for memberlist's
	// own goodbye.
	timeout := 3 * time.Second
	if at, ok := ctx.Deadline(); ok {
		timeout = max(time.Millisecond, min(timeout, time.Until(at)/2))
	}
	done := make(chan error, 1)
	if !l.start(func() {
		done <- errors.Join(l.ml.UpdateNode(timeout), l.sayGoodBye(timeout))
	}) {
		return errors.New("leave: closed")
	}
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("leave: %w", err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("leave: %w", ctx.Err())
	}
}

// sayGoodBye lets memberlist leave, unless the List is closed. Close waits for it.
func (l *List) sayGoodBye(timeout time.Duration) error {
	l.leaving <- struct{}{}
	defer func() { <-l.leaving }()
	select {
	case <-l.stop:
		return errors.New("closed")
	default:
		return l.ml.Leave(timeout)
	}
}

// Close stops without a goodbye and waits for every goroutine.
func (l *List) Close() error {
	var err error
	l.once.Do(func() {
		l.mu.Lock()
		close(l.stop)
		l.mu.Unlock()
		l.leaving <- struct{}{}
		err = l.ml.Shutdown()
		<-l.leaving
		l.wg.Wait()
		close(l.views)
	})
	return err
}

// announce gossips our own descriptor when it changed.
func (l *List) announce() {
	defer l.wg.Done()
	for {
		select {
		case <-l.stop:
			return
		case <-l.gossip:
			l.mu.Lock()
			behind := l.floor > l.own.Sequence // an earlier run of this peer had a later clock
			l.mu.Unlock()
			if behind {
				if err := l.seal(); err != nil {
					l.log.Error("seal the own descriptor", "err", err)
				}
			}
			if err := l.ml.UpdateNode(time.Second); err != nil {
				l.log.Debug("gossip of the own descriptor", "err", err)
			}
		}
	}
}

// settle exchanges the membership with a member whose View differs from ours for longer than
// gossip takes. A gossip message may be lost for good, and memberlist's own exchange is rare.
func (l *List) settle() {
	defer l.wg.Done()
	for {
		var p peer.ID
		select {
		case <-l.stop:
			return
		case p = <-l.differ:
		}
		if _, err := l.ml.Join([]string{joinName(p)}); err != nil {
			l.log.Debug("exchange with a member of another view", "peer", p.String(), "err", err)
		}
		// In a large zone the exchange takes long and the views often differ.
		pause := settlePause * time.Duration(max(1, len(l.View().Members())/settleSmall))
		select {
		case <-l.stop:
			return
		case <-time.After(pause):
		}
	}
}

// watch turns changes into Views, one at a time and in order.
func (l *List) watch() {
	defer l.wg.Done()
	for {
		select {
		case <-l.stop:
			return
		case <-l.wake:
			l.publish()
		}
	}
}

// publish makes the View of the members that others see. Before that, the host gets the
// addresses of new members, and the connections to members that are gone are closed. So no call
// is lost on a connection to a peer that a View shows as gone. The exception is when closing
// took longer than hangUpLimit.
func (l *List) publish() {
	l.mu.Lock()
	ms := make([]partition.Member, 0, len(l.members))
	for _, d := range l.members {
		ms = append(ms, d.Member)
	}
	lost, news := l.lost, l.news
	l.lost, l.news = nil, nil
	l.mu.Unlock()

	for _, d := range news {
		l.learn(d.Member)
	}
	l.hangUp(lost)

	v := partition.NewView(ms)
	l.mu.Lock()
	changed := v.Digest() != l.view.Digest()
	if changed {
		l.view, l.viewAt = v, time.Now()
	}
	l.mu.Unlock()
	if !changed {
		return
	}
	select {
	case <-l.views: // the reader is slow: replace the View that it has not read
	default:
	}
	l.views <- v // does not block: this goroutine is the only sender
}

// hangUp closes the connections to peers that are gone. A connection to a dead peer looks
// healthy for half a minute, and requests to the peer's next run would be lost on it.
func (l *List) hangUp(gone []peer.ID) {
	if len(gone) == 0 {
		return
	}
	var closing sync.WaitGroup
	for _, p := range gone {
		if l.opts.Elsewhere != nil && l.opts.Elsewhere(p) {
			continue
		}
		l.opts.Host.Peerstore().UpdateAddrs(p, peerstore.PermanentAddrTTL, peerstore.RecentlyConnectedAddrTTL)
		closing.Add(1)
		if !l.start(func() { defer closing.Done(); _ = l.opts.Host.Network().ClosePeer(p) }) {
			closing.Done() // this peer is stopping and closes all connections
		}
	}
	done := make(chan struct{})
	if !l.start(func() { closing.Wait(); close(done) }) {
		return
	}
	select {
	case <-done:
	case <-time.After(hangUpLimit):
	case <-l.stop:
	}
}

// learn gives the host the addresses of a member.
func (l *List) learn(m partition.Member) {
	p, err := peer.Decode(m.ID)
	if err != nil || p == l.self {
		return
	}
	book := l.opts.Host.Peerstore()
	// the addresses that it had before
	book.UpdateAddrs(p, peerstore.PermanentAddrTTL, peerstore.RecentlyConnectedAddrTTL)
	book.AddAddrs(p, parseAddrs(m.Addrs), peerstore.PermanentAddrTTL)
}

// notify puts a token into c, whose capacity is 1, if there is none.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
