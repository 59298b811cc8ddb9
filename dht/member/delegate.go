package member

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"strings"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/echo-node/echo-node/dht/wire"
)

// delegate has the methods that memberlist calls. They run under memberlist's own lock: they
// must not block and must not call memberlist.
type delegate struct{ l *List }

// checked is the last descriptor of a peer that passed the checks. If the same bytes come again,
// the signature check is skipped. A descriptor with a lower sequence is refused, see
// forgetSequence.
type checked struct {
	// as sealed; the same opened; and when it was accepted, or the member was dropped
	raw  []byte
	desc wire.Descriptor
	at   time.Time
}

// forgetSequence is how long the sequence of a peer that is no member excludes lower ones.
// After that, a peer whose clock was set back can join again.
const forgetSequence = time.Minute

// NodeMeta implements memberlist.Delegate. It returns our own sealed descriptor.
func (d delegate) NodeMeta(limit int) []byte {
	d.l.mu.Lock()
	defer d.l.mu.Unlock()
	if len(d.l.sealed) > limit {
		return nil
	}
	return d.l.sealed
}

// The rest of memberlist.Delegate is for user messages, which are not used here.

// NotifyMsg implements memberlist.Delegate.
func (delegate) NotifyMsg([]byte) {}

// GetBroadcasts implements memberlist.Delegate.
func (delegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState implements memberlist.Delegate.
func (delegate) LocalState(bool) []byte { return nil }

// MergeRemoteState implements memberlist.Delegate.
func (delegate) MergeRemoteState([]byte, bool) {}

// NotifyAlive checks every alive message before memberlist accepts it.
func (d delegate) NotifyAlive(n *memberlist.Node) error {
	l := d.l
	p, err := peer.Decode(n.Name)
	if err != nil {
		return l.refuse(fmt.Errorf("name %.64q: %w", n.Name, err))
	}
	// Each peer has only one name and one address, so that it cannot appear twice.
	if n.Name != p.String() || !n.Addr.Equal(fakeIP(p)) || n.Port != fakePort {
		return l.refuse(fmt.Errorf("name %.64q and address %s do not match", n.Name, n.Addr))
	}
	// Other versions would make every later exchange of state fail (verifyProtocol).
	if n.PMin != memberlist.ProtocolVersionMin || n.PMax != memberlist.ProtocolVersionMax ||
		n.PCur != memberlist.ProtocolVersion2Compatible ||
		n.DMin != 0 || n.DMax != 0 || n.DCur != 0 {
		return l.refuse(fmt.Errorf("%.64q speaks another version", n.Name))
	}
	l.mu.Lock()
	known, seen := l.checked[n.Name]
	_, live := l.members[n.Name]
	room := live || seen || l.hasRoom()
	l.mu.Unlock()
	// memberlist repeats alive messages often, and a check of the signature is slow.
	if seen && bytes.Equal(known.raw, n.Meta) {
		return nil
	}
	if !room {
		return l.refuse(errors.New("too many members"))
	}
	desc, err := wire.OpenDescriptor(n.Name, l.opts.Space, n.Meta, time.Time{})
	if err != nil {
		return l.refuse(err)
	}
	return l.allow(n.Name, p, n.Meta, desc)
}

// hasRoom makes room for one more peer by forgetting those that are gone. The caller holds mu.
func (l *List) hasRoom() bool {
	if len(l.checked) < l.opts.MaxMembers {
		return true
	}
	for name, c := range l.checked {
		if _, live := l.members[name]; !live && time.Since(c.at) > forgetSequence {
			delete(l.checked, name)
		}
	}
	return len(l.checked) < l.opts.MaxMembers
}

// refuse counts a descriptor that was refused, and returns err.
func (l *List) refuse(err error) error {
	l.mu.Lock()
	l.bad++
	l.mu.Unlock()
	return err
}

// allow remembers a descriptor that passed the checks, unless it is older than a known one.
func (l *List) allow(name string, p peer.ID, raw []byte, desc wire.Descriptor) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p == l.self {
		// Our own descriptor from before a restart or a change: use a higher sequence.
		if desc.Sequence > l.floor {
			l.floor = desc.Sequence
			notify(l.gossip)
		}
		if !bytes.Equal(raw, l.sealed) {
			return nil // memberlist refutes it with the result of NodeMeta
		}
	}
	if known, ok := l.checked[name]; ok && desc.Sequence < known.desc.Sequence {
		_, live := l.members[name]
		// A replayed old descriptor could otherwise change a member's addresses or capacity.
		if live || time.Since(known.at) < forgetSequence {
			l.old++
			return fmt.Errorf("%.64q: sequence %d is older than %d", name, desc.Sequence, known.desc.Sequence)
		}
	}
	l.checked[name] = checked{raw: bytes.Clone(raw), desc: desc, at: time.Now()}
	return nil
}

// NotifyJoin implements memberlist.EventDelegate.
func (d delegate) NotifyJoin(n *memberlist.Node) { d.l.alive(n) }

// NotifyUpdate implements memberlist.EventDelegate.
func (d delegate) NotifyUpdate(n *memberlist.Node) { d.l.alive(n) }

// NotifyLeave implements memberlist.EventDelegate. The member left or was found dead.
func (d delegate) NotifyLeave(n *memberlist.Node) {
	l := d.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if p, err := peer.Decode(n.Name); err == nil && p != l.self {
		l.lost = append(l.lost, p)
	}
	l.drop(n.Name, false)
	notify(l.wake)
}

// alive stores a member, or its changed descriptor, in the map.
func (l *List) alive(n *memberlist.Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, ok := l.checked[n.Name]
	if !ok || !bytes.Equal(c.raw, n.Meta) {
		// Our own first entry comes without NotifyAlive. Any other node that NotifyAlive did
		// not accept is no member.
		desc, err := wire.OpenDescriptor(n.Name, l.opts.Space, n.Meta, time.Time{})
		if err != nil {
			l.log.Debug("member without a good descriptor", "peer", n.Name, "err", err)
			return
		}
		c = checked{raw: bytes.Clone(n.Meta), desc: desc, at: time.Now()}
		l.checked[n.Name] = c
	}
	// For memberlist the member is still alive, but it said goodbye.
	if c.desc.Leaving {
		l.drop(n.Name, true)
	} else {
		l.members[n.Name] = c.desc
		l.news = append(l.news, c.desc)
		delete(l.gone, n.Name)
	}
	notify(l.wake)
}

// drop moves a member to those that are gone. The caller holds mu.
func (l *List) drop(name string, left bool) {
	desc, ok := l.members[name]
	if !ok {
		return
	}
	delete(l.members, name)
	now := time.Now()
	var oldest string
	for id, g := range l.gone {
		if now.Sub(g.Since) > keepGone {
			delete(l.gone, id)
		} else if oldest == "" || g.Since.Before(l.gone[oldest].Since) {
			oldest = id
		}
	}
	if len(l.gone) >= MaxGone {
		delete(l.gone, oldest)
	}
	if c, ok := l.checked[name]; ok {
		c.at = now // forgetSequence counts from here
		l.checked[name] = c
	}
	l.gone[name] = Gone{Member: desc.Member, Since: now, Left: left}
}

// AckPayload implements memberlist.PingDelegate. It returns the digest of our View.
func (d delegate) AckPayload() []byte {
	d.l.mu.Lock()
	defer d.l.mu.Unlock()
	return binary.BigEndian.AppendUint64(nil, d.l.view.Digest())
}

// NotifyPingComplete implements memberlist.PingDelegate. It compares Views.
func (d delegate) NotifyPingComplete(n *memberlist.Node, _ time.Duration, payload []byte) {
	l := d.l
	p, err := peer.Decode(n.Name)
	if err != nil || len(payload) != 8 {
		return
	}
	l.mu.Lock()
	differs := binary.BigEndian.Uint64(payload) != l.view.Digest() && time.Since(l.viewAt) > settleAfter
	l.mu.Unlock()
	if !differs {
		return
	}
	select {
	case l.differ <- p:
	default:
	}
}

// parseAddrs returns the multiaddrs in texts. It skips texts that are none.
func parseAddrs(texts []string) []ma.Multiaddr {
	var out []ma.Multiaddr
	for _, s := range texts {
		if a, err := ma.NewMultiaddr(s); err == nil {
			out = append(out, a)
		}
	}
	return out
}

// newLogger writes memberlist's lines to slog at debug level. What matters to a user is
// visible in the View.
func newLogger(to *slog.Logger) *log.Logger { return log.New(lineWriter{to}, "", 0) }

// lineWriter passes each line to a logger.
type lineWriter struct{ to *slog.Logger }

// Write implements io.Writer. log calls it once per line.
func (w lineWriter) Write(b []byte) (int, error) {
	ctx := context.Background()
	if w.to.Enabled(ctx, slog.LevelDebug) {
		const longest = 400 // some lines print whole descriptors as numbers
		line := strings.TrimSpace(string(b[:min(len(b), longest)]))
		w.to.DebugContext(ctx, "swim", "line", line)
	}
	return len(b), nil
}
