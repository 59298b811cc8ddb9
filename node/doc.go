// Package node is ONE PEER: it assembles partition, store, crawler and dht, and
// adds what needs all of them.
//
//   - package placement, pure: who should keep which slice, by this peer's View.
//   - package replica: who does keep and own it, by majorities; its log and copies to the
//     other replicas, hand-over, and copies that differ (I4, I6).
//   - admit (admit.go): the registrar's side of a link, answered only when a
//     majority of the replicas has it (I2), idempotent (I1).
//   - forward (forward.go): the outbox on its way to the owners.
//   - addresses (address.go; package hostlease, pure): one pace for an IP address
//     that hosts of several peers live on.
//   - gate (gate.go, credit.go pure): what one other peer may ask of this one.
//   - swarm (swarm.go): the other peers, as the parts of this one know and ask them.
//   - idle (idle.go, pure decision): is the whole swarm done?
//
// What is true after a crash: everything acknowledged is at a majority of its
// replicas. What was agreed is in the store, whole or not at all with the answer
// that told of it; links not finally answered are still in the outbox, which the
// other replicas have as well. A copy that was not finished is dropped at the
// next start.
package node
