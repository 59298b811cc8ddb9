package member

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// Limits of the transport.
const (
	// MaxPacket is the longest SWIM packet in bytes.
	MaxPacket = 8 << 10
	// MaxState is the largest number of bytes read from one SWIM stream.
	MaxState = 4 << 20
	// MaxStates is the largest number of members, including dead ones, in one push.
	MaxStates = 4096

	// packets received and not yet handled; more are dropped, like in UDP
	packetQueue  = 256
	sendQueue    = 64               // packets waiting for one peer; more are dropped
	dialTimeout  = 5 * time.Second  // for the stream of packets
	writeTimeout = 2 * time.Second  // of one packet
	idleWriter   = time.Minute      // without a packet for this time, the sending stream is closed
	idleReader   = 3 * time.Minute  // without a packet for this time, the receiving stream is reset
	bodyTimeout  = 10 * time.Second // for the rest of a packet once its length has arrived
	fakePort     = 1
)

// traffic counts the transport's packets and bytes.
type traffic struct {
	packetsIn, packetsOut, bytesIn, bytesOut, dropped, refused atomic.Uint64
}

// transport is a libp2p host as memberlist uses it.
type transport struct {
	host           host.Host
	packets        chan *memberlist.Packet
	streams        chan net.Conn
	contact        func(peer.ID) // a peer sent something; must not block
	packetID, stID protocol.ID
	traffic        traffic
	accusers       accusers
	// reports whether id is a member in our View; must not block
	live func(id string) bool

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu sync.Mutex
	// closed is set by Shutdown; writers has the queue of each peer with a writer; open has the
	// streams that Shutdown resets
	closed  bool
	writers map[peer.ID]chan []byte
	open    map[network.Stream]struct{}
}

var _ memberlist.NodeAwareTransport = (*transport)(nil)

// newTransport makes a transport and starts to accept streams. prefix is that of the protocols'
// names.
func newTransport(h host.Host, prefix protocol.ID, contact func(peer.ID), live func(string) bool) *transport {
	ctx, cancel := context.WithCancel(network.WithAllowLimitedConn(context.Background(), "swim"))
	t := &transport{host: h, contact: contact, live: live, ctx: ctx, cancel: cancel,
		packets: make(chan *memberlist.Packet, packetQueue), streams: make(chan net.Conn),
		packetID: prefix + "/swim-packet/1", stID: prefix + "/swim-stream/1",
		writers: map[peer.ID]chan []byte{}, open: map[network.Stream]struct{}{}}
	h.SetStreamHandler(t.packetID, t.readPackets)
	h.SetStreamHandler(t.stID, t.accept)
	return t
}

// fakeIP returns the unique local address that represents a peer.
func fakeIP(p peer.ID) net.IP {
	sum := sha256.Sum256([]byte(p))
	ip := make(net.IP, net.IPv6len)
	ip[0] = 0xfd
	copy(ip[1:], sum[:net.IPv6len-1])
	return ip
}

// fakeAddr returns the address that represents a peer. memberlist needs one, but nothing dials it.
func fakeAddr(p peer.ID) net.Addr { return &net.UDPAddr{IP: fakeIP(p), Port: fakePort} }

// joinName returns the name with which memberlist joins p.
func joinName(p peer.ID) string {
	return fmt.Sprintf("%s/[%s]:%d", p, fakeIP(p), fakePort)
}

// begin registers a stream, so that Shutdown can reset it and wait for its goroutine. It
// returns false when the transport is closed.
func (t *transport) begin(s network.Stream) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.wg.Add(1)
	t.open[s] = struct{}{}
	return true
}

// end is called when the goroutine of a stream that called begin ends.
func (t *transport) end(s network.Stream) {
	t.mu.Lock()
	delete(t.open, s)
	t.mu.Unlock()
	t.wg.Done()
}

// accept passes a stream to memberlist, which serves it in its own goroutine.
func (t *transport) accept(s network.Stream) {
	t.contact(s.Conn().RemotePeer())
	c := t.guard(s)
	select {
	case t.streams <- c:
	case <-t.ctx.Done():
		_ = c.Close()
		_ = s.Reset()
	}
}

// readPackets serves one incoming stream of packets.
func (t *transport) readPackets(s network.Stream) {
	if !t.begin(s) {
		_ = s.Reset()
		return
	}
	defer t.end(s)
	from := s.Conn().RemotePeer()
	t.contact(from)
	r := bufio.NewReader(s)
	for {
		b, err := readPacket(s, r)
		if err != nil {
			_ = s.Reset()
			return
		}
		t.traffic.packetsIn.Add(1)
		t.traffic.bytesIn.Add(uint64(len(b)))
		if err = vetPacket(b); err == nil {
			b, err = t.softenPacket(from, b)
		}
		if err != nil {
			t.traffic.refused.Add(1)
			_ = s.Reset()
			return
		}
		select {
		case t.packets <- &memberlist.Packet{Buf: b, From: fakeAddr(from), Timestamp: time.Now()}:
		default:
			t.traffic.dropped.Add(1)
		}
	}
}

// readPacket reads one packet. It resets the stream if no packet comes for idleReader, or if one
// takes longer than bodyTimeout.
func readPacket(s network.Stream, r *bufio.Reader) ([]byte, error) {
	idle := time.AfterFunc(idleReader, func() { _ = s.Reset() })
	defer idle.Stop()
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, err
	}
	if n == 0 || n > MaxPacket {
		return nil, fmt.Errorf("packet of %d bytes, the limit is %d", n, MaxPacket)
	}
	// The length has arrived, so the rest must come soon.
	idle.Reset(bodyTimeout)
	b := make([]byte, n)
	_, err = io.ReadFull(r, b)
	return b, err
}

// peerOf returns the peer of an address. The address itself says nothing, so the name must be set.
func peerOf(a memberlist.Address) (peer.ID, error) {
	if a.Name == "" {
		return "", errors.New("swim: an address without a node name")
	}
	return peer.Decode(a.Name)
}

// WriteToAddress queues b for the peer. It never blocks, and a packet may be lost, as
// memberlist expects.
func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	p, err := peerOf(a)
	if err != nil {
		return time.Time{}, err
	}
	if len(b) == 0 || len(b) > MaxPacket {
		return time.Time{}, fmt.Errorf("swim: packet of %d bytes, the limit is %d", len(b), MaxPacket)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return time.Time{}, errors.New("swim: transport is closed")
	}
	q := t.writers[p]
	if q == nil {
		q = make(chan []byte, sendQueue)
		t.writers[p] = q
		t.wg.Add(1)
		go t.write(p, q)
	}
	frame := append(binary.AppendUvarint(make([]byte, 0, len(b)+2), uint64(len(b))), b...)
	select {
	case q <- frame: // under mu, so that a writer that wants to stop sees it: see retire
	default:
		t.traffic.dropped.Add(1)
	}
	return time.Now(), nil
}

// write owns the sending stream of one peer and ends when it is idle.
func (t *transport) write(p peer.ID, q chan []byte) {
	defer t.wg.Done()
	var s network.Stream
	idle := time.NewTimer(idleWriter)
	defer idle.Stop()
	for {
		select {
		case <-t.ctx.Done():
			if s != nil {
				_ = s.Reset()
			}
			return
		case <-idle.C:
			if t.retire(p, q) {
				if s != nil {
					_ = s.Close()
				}
				return
			}
			idle.Reset(idleWriter)
		case frame := <-q:
			idle.Reset(idleWriter)
			s = t.send(p, s, frame)
		}
	}
}

// retire removes the queue of an idle writer unless a packet arrived in the meantime.
func (t *transport) retire(p peer.ID, q chan []byte) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	// WriteToAddress put a packet into the queue before this goroutine had mu.
	if len(q) > 0 {
		return false
	}
	delete(t.writers, p)
	return true
}

// send writes one frame on s. It returns the stream to use next, or nil after a failure. An
// existing stream may lead to an earlier run of the peer. If it fails, send tries a new one,
// because gossip is not repeated often.
func (t *transport) send(p peer.ID, s network.Stream, frame []byte) network.Stream {
	if s != nil {
		if t.writeFrame(s, frame) {
			return s
		}
		if t.ctx.Err() != nil {
			return nil
		}
	}
	ctx, cancel := context.WithTimeout(t.ctx, dialTimeout)
	defer cancel()
	s, err := t.host.NewStream(ctx, p, t.packetID)
	if err != nil {
		t.traffic.dropped.Add(1)
		return nil
	}
	if !t.writeFrame(s, frame) {
		t.traffic.dropped.Add(1)
		return nil
	}
	return s
}

// writeFrame writes one frame within writeTimeout. After a failure it resets the stream and returns
// false.
func (t *transport) writeFrame(s network.Stream, frame []byte) bool {
	late := time.AfterFunc(writeTimeout, func() { _ = s.Reset() })
	_, err := s.Write(frame)
	if !late.Stop() || err != nil {
		_ = s.Reset()
		return false
	}
	t.traffic.packetsOut.Add(1)
	t.traffic.bytesOut.Add(uint64(len(frame)))
	return true
}

// DialAddressTimeout opens a stream for an exchange of state or a fallback ping.
func (t *transport) DialAddressTimeout(a memberlist.Address, d time.Duration) (net.Conn, error) {
	p, err := peerOf(a)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(t.ctx, d)
	defer cancel()
	s, err := t.host.NewStream(ctx, p, t.stID)
	if err != nil {
		return nil, err
	}
	return t.guard(s), nil
}

// guard turns s into a net.Conn that Shutdown resets, so that no reader waits for it.
func (t *transport) guard(s network.Stream) net.Conn {
	g := newGuard(s, &t.traffic)
	g.soften = func(r io.Reader, nodes int) ([]byte, error) { return t.softenPush(s.Conn().RemotePeer(), r, nodes) }
	g.closed = func() {
		t.mu.Lock()
		delete(t.open, s)
		t.mu.Unlock()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		_ = s.Reset()
	}
	t.open[s] = struct{}{}
	return g
}

// FinalAdvertiseAddr implements memberlist.Transport.
func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return fakeIP(t.host.ID()), fakePort, nil
}

// WriteTo implements memberlist.Transport. It fails, because without a name there is no
// receiver.
func (t *transport) WriteTo([]byte, string) (time.Time, error) {
	return time.Time{}, errors.New("swim: an address without a node name")
}

// DialTimeout implements memberlist.Transport. It fails like WriteTo.
func (t *transport) DialTimeout(string, time.Duration) (net.Conn, error) {
	return nil, errors.New("swim: an address without a node name")
}

// PacketCh implements memberlist.Transport.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// StreamCh implements memberlist.Transport.
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// Shutdown stops everything and waits for every goroutine of the transport.
func (t *transport) Shutdown() error {
	t.host.RemoveStreamHandler(t.packetID)
	t.host.RemoveStreamHandler(t.stID)
	t.cancel()
	t.mu.Lock()
	t.closed = true
	for s := range t.open {
		_ = s.Reset()
	}
	t.mu.Unlock()
	t.wg.Wait()
	return nil
}
