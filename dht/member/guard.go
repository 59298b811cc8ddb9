package member

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/libp2p/go-libp2p/core/network"
)

// The message kinds, as memberlist numbers them, that a List sends. Other kinds are refused
// before they are parsed: 8 user, 9 compressed, 10 encrypted, and 244 labelled.
const (
	kindPing         = 0
	kindIndirectPing = 1
	kindAck          = 2
	kindSuspect      = 3
	kindAlive        = 4
	kindDead         = 5
	kindPushPull     = 6
	kindCompound     = 7
	kindNack         = 11
	kindCRC          = 12
	kindError        = 13
)

var errRefused = errors.New("swim: refused message")

// vetPacket refuses a packet with any message that a List would not send. The main reason is
// compressed messages, which decompress to megabytes and may nest.
func vetPacket(b []byte) error {
	// 1 byte kind, 4 bytes checksum, then the message.
	if len(b) > 5 && b[0] == kindCRC {
		b = b[5:]
	}
	if len(b) == 0 {
		return fmt.Errorf("%w: empty", errRefused)
	}
	if b[0] != kindCompound {
		return vetKind(b[0])
	}
	// 1 byte number of parts, 2 bytes length of each, big endian, then the parts.
	if len(b) < 2 {
		return fmt.Errorf("%w: truncated", errRefused)
	}
	parts, lengths := int(b[1]), b[2:]
	if len(lengths) < 2*parts {
		return fmt.Errorf("%w: truncated", errRefused)
	}
	rest := lengths[2*parts:]
	for i := range parts {
		n := int(binary.BigEndian.Uint16(lengths[2*i:]))
		if n == 0 || n > len(rest) {
			return fmt.Errorf("%w: truncated", errRefused)
		}
		if err := vetKind(rest[0]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// vetKind refuses a kind of message that a List does not send in a packet.
func vetKind(kind byte) error {
	switch kind {
	case kindPing, kindIndirectPing, kindAck, kindSuspect, kindAlive, kindDead, kindNack:
		return nil
	}
	return fmt.Errorf("%w: kind %d", errRefused, kind)
}

// guard turns a stream into a net.Conn. It checks what is read from the stream: the kind of the
// message, the number of states that it announces, and its length.
type guard struct {
	network.Stream
	traffic *traffic
	vetted  bool
	head    bytes.Buffer // read during the check, not yet returned to the reader
	left    int
	timer   *time.Timer
	closed  func() // called by Close; nil = nothing to do
	// soften reads the states of an exchange and returns them changed; nil = unchanged.
	soften func(r io.Reader, nodes int) ([]byte, error)
}

// newGuard makes a guard that reads at most MaxState bytes. t counts what it refuses.
func newGuard(s network.Stream, t *traffic) *guard {
	return &guard{Stream: s, traffic: t, left: MaxState}
}

// pushHeader is what memberlist sends before its states.
type pushHeader struct {
	Nodes        int
	UserStateLen int
	Join         bool
}

// vet checks the first message on the stream. It accepts a ping, an ack, an error, or an
// exchange of state with a valid header, whose states it softens. What it reads goes into
// g.head.
func (g *guard) vet() error {
	g.vetted = true
	var kind [1]byte
	if _, err := io.ReadFull(g.Stream, kind[:]); err != nil {
		return err
	}
	g.head.WriteByte(kind[0])
	switch kind[0] {
	case kindPing, kindAck, kindError:
		return nil
	case kindPushPull:
	default:
		return fmt.Errorf("%w: kind %d", errRefused, kind[0])
	}
	var h pushHeader
	const longest = 128 // bytes; three fields with their names take about forty
	tee := io.TeeReader(io.LimitReader(g.Stream, longest), &g.head)
	if err := codec.NewDecoder(tee, &codec.MsgpackHandle{}).Decode(&h); err != nil {
		return fmt.Errorf("%w: %v", errRefused, err)
	}
	// memberlist would allocate memory for as many states as the header claims.
	if h.Nodes < 0 || h.Nodes > MaxStates || h.UserStateLen != 0 {
		return fmt.Errorf("%w: %d states and %d bytes, the limits are %d and 0", errRefused, h.Nodes, h.UserStateLen,
			MaxStates)
	}
	if g.soften == nil {
		return nil
	}
	states := &io.LimitedReader{R: g.Stream, N: int64(g.left)}
	soft, err := g.soften(states, h.Nodes)
	if err == nil {
		g.left = int(states.N)
		_, err = g.head.Write(soft)
	}
	return err
}

// Read implements net.Conn.
func (g *guard) Read(p []byte) (int, error) {
	if !g.vetted {
		if err := g.vet(); err != nil {
			if errors.Is(err, errRefused) {
				g.traffic.refused.Add(1)
			}
			_ = g.Stream.Reset()
			return 0, err
		}
	}
	if g.head.Len() > 0 {
		return g.head.Read(p)
	}
	// memberlist itself has no limit for a stream.
	if g.left <= 0 {
		_ = g.Stream.Reset()
		return 0, fmt.Errorf("%w: over %d bytes", errRefused, MaxState)
	}
	n, err := g.Stream.Read(p[:min(len(p), g.left)])
	g.left -= n
	return n, err
}

// SetDeadline implements net.Conn. When the deadline passes, it resets the stream, so that it
// also works with transports that have no deadlines.
func (g *guard) SetDeadline(at time.Time) error {
	if g.timer == nil {
		g.timer = time.AfterFunc(time.Until(at), func() { _ = g.Stream.Reset() })
		return nil
	}
	g.timer.Reset(time.Until(at))
	return nil
}

// Close implements net.Conn.
func (g *guard) Close() error {
	if g.timer != nil {
		g.timer.Stop()
	}
	if g.closed != nil {
		g.closed()
	}
	return g.Stream.Close()
}

// LocalAddr implements net.Conn.
func (g *guard) LocalAddr() net.Addr { return fakeAddr(g.Conn().LocalPeer()) }

// RemoteAddr implements net.Conn.
func (g *guard) RemoteAddr() net.Addr { return fakeAddr(g.Conn().RemotePeer()) }
