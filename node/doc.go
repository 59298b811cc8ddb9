// Package node is one peer. It assembles partition, store, crawler and dht, and adds what needs all
// of them.
//
//   - package placement (pure): which peers should keep which slice, by this peer's View.
//   - package replica: which peers keep and own a slice, by majorities; logs and copies for the
//     other replicas; hand-over; repair of copies that differ (I4, I6).
//   - package forward: admits links, and sends those in the outbox to their owners (I1, I2, I3).
//   - package hostlease: one pace for an IP address that serves hosts of several peers.
//   - package quota: which requests of other peers are answered, and how many.
//   - swarm (swarm.go): how the parts of this peer know and call the other peers.
//   - idle (idle.go, a pure decision): whether the whole swarm is done.
//
// After a crash, everything acknowledged is at a majority of its replicas. What was agreed is in
// the store, either completely or not at all, together with the answer that reported it. Links
// without a final answer are still in the outbox, which the other replicas have as well. An
// unfinished copy is dropped at the next start.
package node
