package member

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/memberlist"
	"github.com/libp2p/go-libp2p/core/peer"
)

// What one peer says of another is a claim. SWIM accepts two kinds of claims at once: that a
// member is dead, and that a member left. So one hostile member could empty every View. Here a
// claim of death becomes a suspicion: the accused member has time to refute it, and each peer
// detects a death itself. A member that leaves says so in its own sealed descriptor, so a claim
// that it left is also only a suspicion.
//
// The incarnation, which is not in the descriptor, orders claims. A claim with a very high one
// would leave the accused member no higher number to refute it. So other peers may claim up to
// maxClaim, and only a peer itself may use higher ones.
const (
	// Highest incarnations in what a peer sends: about another peer, and about itself. memberlist
	// uses 32 bits.
	maxClaim = 1 << 30
	maxOwn   = 1 << 31
	// maxAccusers is the largest number of peers that are counted by name.
	maxAccusers = 256
)

// claim has the fields that suspect and dead messages share, and the first two of an alive
// message.
type claim struct {
	Incarnation uint32
	Node        string
	From        string
}

// pushState is one member in an exchange of state, as memberlist encodes it.
type pushState struct {
	Name        string
	Addr        []byte
	Port        uint16
	Meta        []byte
	Incarnation uint32
	State       memberlist.NodeStateType
	Vsn         []uint8
}

// accusers counts claims of death about members in our View, by the peer that sent them to us in a
// packet. Claims in an exchange of state are not counted. A peer that passes on others' claims is
// counted too. A peer that invents claims has a much higher count. Safe for concurrent use.
type accusers struct {
	mu sync.Mutex
	by map[string]uint64
}

// add counts one claim. When there are maxAccusers names already, it counts a new peer as "others".
func (a *accusers) add(from peer.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := from.String()
	if _, known := a.by[name]; !known && len(a.by) >= maxAccusers {
		name = "others"
	}
	if a.by == nil {
		a.by = map[string]uint64{}
	}
	a.by[name]++
}

// all returns the counts so far.
func (a *accusers) all() map[string]uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make(map[string]uint64, len(a.by))
	for p, n := range a.by {
		out[p] = n
	}
	return out
}

// soften turns the claims of death in one message of a packet into suspicions, in place. The
// message was checked before.
func (t *transport) soften(from peer.ID, b []byte) error {
	switch b[0] {
	case kindDead, kindSuspect, kindAlive:
	default:
		return nil
	}
	var c claim
	if err := codec.NewDecoderBytes(b[1:], &codec.MsgpackHandle{}).Decode(&c); err != nil {
		return fmt.Errorf("%w: %v", errRefused, err)
	}
	if err := checkIncarnation(from, c.Node, c.Incarnation); err != nil {
		return err
	}
	// The messages dead and suspect have the same fields, so the kind alone changes.
	if b[0] == kindDead {
		t.accused(from, c.Node)
		b[0] = kindSuspect
	}
	return nil
}

// checkIncarnation refuses an incarnation that from may not claim for node.
func checkIncarnation(from peer.ID, node string, n uint32) error {
	limit := uint32(maxClaim)
	if node == from.String() {
		limit = maxOwn
	}
	if n > limit {
		return fmt.Errorf("%w: incarnation %d of %.64q, the limit is %d", errRefused, n, node, limit)
	}
	return nil
}

// accused records that from claims that node is dead.
func (t *transport) accused(from peer.ID, node string) {
	if node != from.String() && t.live(node) {
		t.accusers.add(from)
	}
}

// softenPacket is soften for each message of a packet that vetPacket accepted. It removes the
// checksum before the packet, because the stream has its own.
func (t *transport) softenPacket(from peer.ID, b []byte) ([]byte, error) {
	if len(b) > 5 && b[0] == kindCRC {
		b = b[5:]
	}
	if b[0] != kindCompound {
		return b, t.soften(from, b)
	}
	parts := int(b[1])
	lengths, rest := b[2:2+2*parts], b[2+2*parts:]
	for i := range parts {
		n := int(binary.BigEndian.Uint16(lengths[2*i:]))
		if err := t.soften(from, rest[:n]); err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	return b, nil
}

// softenPush reads the states of an exchange and returns them softened.
func (t *transport) softenPush(from peer.ID, r io.Reader, nodes int) ([]byte, error) {
	dec := codec.NewDecoder(r, &codec.MsgpackHandle{})
	var out bytes.Buffer
	enc := codec.NewEncoder(&out, &codec.MsgpackHandle{})
	for range nodes {
		var s pushState
		if err := dec.Decode(&s); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil, err
			}
			return nil, fmt.Errorf("%w: %v", errRefused, err)
		}
		if err := checkIncarnation(from, s.Name, s.Incarnation); err != nil {
			return nil, err
		}
		// A member that really left says so in its descriptor. A dead one does not refute the
		// suspicion.
		if s.State == memberlist.StateDead || s.State == memberlist.StateLeft {
			s.State = memberlist.StateSuspect
		}
		if err := enc.Encode(&s); err != nil {
			return nil, fmt.Errorf("encode a state: %w", err)
		}
	}
	return out.Bytes(), nil
}
