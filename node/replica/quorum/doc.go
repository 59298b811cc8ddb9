// Package quorum decides, for one peer, which peers are the replicas of each slice and which of
// them is the owner. The package is pure: time is an argument, messages are values, and it
// sends and stores nothing. Package node carries its messages and writes its rows.
//
// # ReplicaSets
//
// Each slice has a chain of ReplicaSets. The charter fixes the first one: {founder; founder}.
// So nothing has to be agreed before a swarm starts. The replicas of the present ReplicaSet
// decide its successor by single-decree Paxos: a majority of them must accept it. See Lamport,
// "The part-time parliament". For a chain of ReplicaSets see Lamport, Malkhi and Zhou,
// "Reconfiguring a state machine"; the window is one. Any two majorities overlap, so there is
// only one successor.
//
// The present owner may propose with the lowest ballot at once, as a leader does in
// Multi-Paxos. Every other replica first prepares a higher ballot.
//
// # Leases
//
// A peer acts in a slice, that is, it fetches and acknowledges, only while a majority of the
// slice's replicas leases the slice to it. The peer itself counts as one of them. A replica
// grants a lease for LeaseGrant. The owner counts LeaseHold from the moment it sent the
// request. So clocks need not agree; they only have to run at about the same speed. A replica
// that has leased a slice promises nothing to any peer except the owner. A replica that has
// just started may have granted a lease before, so it promises nothing for LeaseGrant. The
// owner's lease ends when either its monotonic or its wall clock says so, because only one of
// them runs while a machine is suspended.
//
// A peer grants a lease to another peer for all that peer's slices at once. The two compare a
// digest of what they know. They compare lists only when the digests differ.
//
// # Logs
//
// A slice's log belongs to its owner; the replicas follow it. Positions continue across
// generations: ReplicaSet.Starts says where the log of each generation began. A replica that
// comes back cuts what a dead generation wrote above that position, and then follows again.
// Entries that are cut were never acknowledged. An acknowledged position is at a majority of
// the replicas. A successor is chosen by a majority that takes nothing from the old owner after
// its promise. The replica with the longest log of that majority becomes the owner, even if
// another replica campaigned.
//
// Rows stay when a log is cut. The rows of a slice merge (store.ImportRows is a join), so a
// surplus row is harmless, and digests find it.
//
// # Forks
//
// When a majority of a slice's replicas is gone for good, a survivor adopts the slice: it
// starts a new Epoch, and no other peer has to agree. Two survivors may do this separately.
// When two forks meet, a decision that a majority made without the adopter wins over the
// adoption. Otherwise the higher (Epoch, Fork, Gen) wins. A peer with a copy of another fork
// first has its rows reconciled with the winner's. A replica that gave up its copy this way and
// comes back does not count as a replica without a copy (slot.lost). Its earlier promises still
// hold (slot.past).
//
// # Which peers are believed
//
// A ReplicaSet carries no proof; quorum certificates are planned. So each peer uses its own
// knowledge to judge which peers may report a decision. The rules are in hear.go. In short:
//
//   - A peer believes the replicas of a ReplicaSet it knows about what came after it, within
//     bounds (MaxGenStep, MaxEpochStep).
//   - A peer may have left a ReplicaSet because of an adoption or hearsay. It believes the
//     replicas of that ReplicaSet about how its chain continued.
//   - A statement from any other peer only makes this peer ask. It is accepted only when all
//     replicas that this peer knows are gone.
//
// The row stores the ReplicaSets that were left, so nothing learned is final. Load replaces a
// stored ReplicaSet that no peer can produce by the last good one.
//
// So three kinds of peers can change nothing: strangers; members that keep other slices; and
// former replicas, at a peer that knows the present ReplicaSet. A hostile peer can still do the
// following:
//
//   - A replica of a slice, as far as a peer knows, can report any successor to that peer. It
//     can take the slice for itself, give it away, adopt it without need, or make it switch
//     between forks. It can also do so after it left, with peers that do not know yet that it
//     left.
//   - A replica of a ReplicaSet that was left can undo the fork that replaced it, at any later
//     time.
//   - A replica can refuse promises and leases, and lie about its copy, so that a shorter log
//     is elected.
//   - One replica of three can vote for both others. While those two cannot reach each other,
//     each of them has a majority with it, and acts.
//   - A peer believes any members that vouch for each other in one case: all replicas it knows
//     have been gone for --orphan-after. A peer that knows only the founder waits only seconds.
//     This ends when one of the replicas is back. So a peer that is cut off from all its fellow
//     replicas can be deceived. What it then decides alone counts with peers that know the same
//     generation.
//   - A member can make a peer ask the replicas of a slice, four times a second.
//
// # After a crash
//
// Rows returned by Dirty must be durable before the response that depends on them is sent. Then
// a restarted peer breaks no promise. Leases and the progress of a proposal are lost in a
// crash; that costs only time.
package quorum
