package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/dht"
	"github.com/echo-node/echo-node/dht/handshake"
	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

// ways returns what o presents to a private swarm. An expired invite is no error here: a peer that
// was admitted long ago may still be started with it.
func (o Options) ways() (dht.Ways, error) {
	w := dht.Ways{SwarmKey: o.SwarmKey}
	if n := len(o.SwarmKey); n != 0 && n != wire.SwarmKeyLen {
		return w, fmt.Errorf("swarm key of %d bytes, not %d", n, wire.SwarmKeyLen)
	}
	if o.Invite == "" {
		return w, nil
	}
	var err error
	w.Invite, err = wire.ParseInvite(o.Invite)
	return w, err
}

// join returns the peers to join: those of o.Join, or those of the invite.
func (o Options) join() []string {
	if len(o.Join) > 0 {
		return o.Join
	}
	w, err := o.ways()
	if err != nil || w.Invite == nil {
		return nil
	}
	return w.Invite.Addrs
}

// hopeless reports whether another request for a charter cannot help.
func hopeless(w dht.Ways, err error) bool {
	return errors.Is(err, handshake.ErrRefused) && w.Invite == nil && len(w.SwarmKey) == 0 ||
		errors.Is(err, wire.ErrExpired)
}

// contradicts returns an error if the charter contradicts o.
func (o Options) contradicts(c partition.Charter) error {
	if o.Private && !c.Private {
		return fmt.Errorf("--private: the swarm %s is open", c.Name)
	}
	return nil
}

// Membership describes how this peer joined its private swarm. It returns "" in an open one.
func (n *Node) Membership() string {
	if !n.charter.Private {
		return ""
	}
	a, ok := n.dht.Membership()
	switch {
	case !ok:
		return "by the swarm's key, no pass yet"
	case a.Depth == 0:
		return "founder"
	case !a.Lasting:
		return "invited by " + a.Inviter + ", no lasting pass yet"
	case a.Inviter == "":
		return "by the swarm's key, let in by " + a.By
	}
	return fmt.Sprintf("invited by %s, let in by %s on %s", a.Inviter, a.By, a.Since.UTC().Format(time.DateOnly))
}

// Invite returns a new invitation code that is valid for life.
func (n *Node) Invite(life time.Duration) (string, error) { return n.dht.NewInvite(life) }
