// Package node is ONE PEER: it assembles partition, store, crawler and dht, and
// adds what needs all of them.
//
//   - territory (territory.go, pure): which slices this peer owns by its View,
//     which it holds rows of, and which it awaits from their former owner.
//   - admit (admit.go): the registrar's side of a link, answered only when
//     durable (I2), idempotent (I1).
//   - forward (forward.go): the outbox on its way to the owners.
//   - hand-over (handover.go): slices change hands by copying first (I4).
//   - query (query.go, merge.go pure): scatter, merge, and what is missing (I8).
//   - export (export.go): the records of all, in one order.
//   - idle (idle.go, pure decision): is the whole swarm done?
//
// What is true after a crash: everything acknowledged is in the store. A slice
// that was being taken over is still awaited, its giver still keeps it; links
// not finally answered are still in the outbox.
//
// It does not replicate yet: a slice has one keeper, and while that peer is gone
// its links wait in outboxes and queries name it missing.
package node
