// Package quota decides which requests of other peers this peer answers.
//
//   - Rules (rules.go). Every kind of request has a rule, in one table, that says who may send it. A
//     request without a rule is refused. The operator's actions are not in the table, because no
//     request of the HTTP API can be made over the swarm's protocols.
//   - Credit (credits.go). Each peer has a token bucket for links, bytes, requests, and for leases
//     and ballots. A peer that does not wait when it is told to is slowed, then cut off for a time.
//
// This peer judges another peer only by its own knowledge: its View of the live members, and the
// replica sets that it has agreed to or learned. A Gate holds both parts for the whole peer, counts
// what they refuse, and obeys the pauses that other peers ask for.
package quota
