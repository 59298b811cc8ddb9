package node

import (
	"time"

	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Status is this peer's state, cheap enough to be asked for every second.
func (n *Node) Status() api.Status {
	// Fetching before the store: a fetch that ends between the two readings then
	// counts twice, never not at all, so Idle is never true too early.
	c := n.crawler.Stats()
	st := n.store.Stats()
	live, _ := n.terr.views()
	acting, awaited := n.terr.acting(), n.terr.awaited()
	s := api.Status{
		ID: n.id, Swarm: n.charter.Name, Charter: n.charter.Digest(), Version: n.o.Version,
		Uptime:  time.Since(n.started).Seconds(),
		Fetched: st.Fetches, Requests: c.Requests, Failed: c.Failed,
		Records: st.Records, Keys: st.Keys, Pending: st.Pending, Due: int64(c.ReadyKeys), Fetching: c.Fetching, Outbox: st.Outbox,
		Slices: len(acting), SlicesAwaited: len(awaited), Peers: len(live.Members()),
		LinksOut: n.count.linksOut.Load(), LinksIn: n.count.linksIn.Load(),
		IndexLag: int64(n.indexLag()), Limits: c.Limits, Stops: c.Stops, DiskBytes: st.DiskBytes,
	}
	if s.Limits == nil {
		s.Limits = []string{}
	}
	s.Idle = s.Pending == 0 && s.Fetching == 0 && s.Outbox == 0 && s.SlicesAwaited == 0 && n.seeding.Load() == 0
	return s
}

// showHere is what this peer's own store knows of k.
func (n *Node) showHere(k partition.Key) (api.Shown, error) {
	s := api.Shown{Key: k, Owner: n.id}
	d, err := n.store.DueOf(k)
	if isNotExist(err) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.Known, s.State, s.Why, s.Depth, s.Attempts = true, stateWord(d.State), d.Reason, d.Depth, d.Attempts
	if !d.At.IsZero() {
		at := d.At.UTC()
		s.DueAt = &at
	}
	rec, err := n.store.Record(k)
	switch {
	case err == nil:
		s.Record = &rec
	case !isNotExist(err):
		return s, err
	}
	return s, nil
}

func stateWord(s store.State) string {
	switch s {
	case store.StatePending:
		return "pending"
	case store.StateDone:
		return "done"
	case store.StateGone:
		return "gone"
	case store.StateRefused:
		return "refused"
	}
	return "unknown"
}
