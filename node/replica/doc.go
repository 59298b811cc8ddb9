// Package replica keeps the same rows of each slice on all of its replicas and decides which peer
// owns the slice.
//
//   - Agreement (agreement.go; package quorum, which is pure): which peers keep and own a slice,
//     and whether this peer may act there now. It is the lock that all other parts take first.
//   - Elections (ballots.go, campaign.go, lease.go): how a majority of the replicas agrees.
//   - Handover (handover.go): a slice moves to another peer after its rows are copied there (I4).
//   - Receiver (receive.go): logs and copies from the owners of slices (package replicate).
//   - Tidier (tidy.go, trash.go): copies of dead forks, and copies that nobody needs.
//   - Repairs (repair.go, recall.go): copies that differ are made equal (I6).
//
// Package placement decides which peers should keep a slice.
package replica
