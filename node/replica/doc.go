// Package replica has each slice kept by its replicas, with the same rows, and owned by one of them.
//
//   - Agreement (agreement.go; package quorum, pure): who does keep and own it, and whether this
//     peer may act there now. It is the lock that all others take first.
//   - Elections (ballots.go, campaign.go, lease.go): how a majority of the replicas agrees.
//   - Handover (handover.go): slices change hands by copying first (I4).
//   - Receiver (receive.go): logs and copies from the owners of slices (package replicate).
//   - Tidier (tidy.go, trash.go): copies of dead forks, and those that nobody needs.
//   - Repairs (repair.go, recall.go): copies that differ are made equal (I6).
//
// Who should keep a slice is package placement's.
package replica
