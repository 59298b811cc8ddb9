// Package quorum decides who keeps and who owns each slice, for one peer. It
// is pure: time is an argument, messages are values, nothing is sent or stored
// here. Package node carries its messages and writes its rows.
//
// # ReplicaSets
//
// Each slice has a chain of ReplicaSets. The first is {founder; founder}, by the
// charter, so nothing has to be agreed before a swarm begins. Which ReplicaSet
// follows is decided by single-decree Paxos among the replicas of the present
// one (Lamport, "The part-time parliament"; a chain of ReplicaSets as in Lamport,
// Malkhi and Zhou, "Reconfiguring a state machine", with a window of one): a
// majority of them accepts it. Two majorities meet, so there is one successor.
//
// The present owner may propose with the least ballot at once, as a leader does
// in Multi-Paxos. Anybody else prepares a higher ballot first.
//
// # Leases
//
// A peer acts in a slice, that is fetches and acknowledges, only while a
// majority of its replicas, itself counted, has leased it to the peer: a replica
// grants LeaseGrant, the owner counts LeaseHold from the moment it asked, so
// clocks need not agree, only run at about the same speed. A replica that has
// leased a slice promises nothing to anybody but the owner. A replica that has
// just started may have granted before; it promises nothing for LeaseGrant.
// The owner's count ends when either its monotonic or its wall clock says so:
// one of them runs while a machine is suspended.
//
// Leases are granted from peer to peer for all their slices at once. Asker and
// granter compare a digest of what they believe; only when it differs do they
// compare lists.
//
// # Logs
//
// A slice's log belongs to its owner; a replica follows it. Positions go on over
// generations: ReplicaSet.Starts says where the log of each generation began, so a
// replica that comes back cuts what a dead generation wrote above that and
// follows on. What was cut was never acknowledged: an acknowledged position is
// at a majority, a successor is chosen by a majority that from its promise on
// takes nothing from the old owner, and the replica with the longest log of that
// majority becomes the owner, whoever campaigned.
//
// Rows stay where logs are cut. The rows of a slice merge (store.ImportRows is
// a join), so a row too many is harmless, and digests find it.
//
// # Forks
//
// When a majority of a slice's replicas is gone for good, a survivor adopts the
// slice: a new Epoch, without anybody's consent. Two may do so apart. Where two
// meet, what a majority agreed on without the adopter wins over the adoption; else
// the higher (Epoch, Fork, Gen) does. Whoever has a copy of another fork has its
// rows reconciled with the winner's first. A replica that gave up its copy so and comes
// back is not taken for one that has nothing (slot.lost), and what it promised
// before still holds (slot.past).
//
// # Whose word counts
//
// A ReplicaSet carries no proof (certificates of a quorum are to come), so each peer
// judges by what it knows itself who may say that one was decided; hear.go has the
// rules. In short: the replicas of what is known are believed about what came after
// it, in bounds (MaxGenStep, MaxEpochStep); the replicas of what was left at an
// adoption, or for hearsay, are believed about how that went on; everybody else's
// word makes this peer ask, and is taken only where all replicas that it knows are
// gone. What was left is remembered in the row, so nothing learned is final. A
// stored ReplicaSet that no peer makes is put aside for the last good one (Load).
//
// So strangers, members that keep other slices, and former replicas by a peer that
// knows the present ReplicaSet, change nothing. What a hostile peer can still do:
//
//   - A replica of a slice, by what a peer knows, can tell that peer any successor:
//     it can take the slice for itself, give it away, adopt it without need, or
//     have it thrash between forks. It can also do so after it left, with peers
//     that have not heard so.
//   - A replica of what was left can undo the fork that took its place, for ever.
//   - A replica can refuse promises and leases, and lie about its copy, so that a
//     shorter log is elected.
//   - A replica of three can vote for two: each of the others, while they do not
//     reach each other, has a majority with it, and acts.
//   - Where all replicas that a peer knows have been gone for --orphan-after, and
//     the founder for seconds for one that knows nothing else, any members that
//     vouch for each other are believed, until one of the replicas is back. A peer
//     cut off from all its fellows can so be deceived, and what was decided on
//     that ground by itself counts with those who know the same generation.
//   - A member can have a peer ask the replicas of a slice, four times a second.
//
// # After a crash
//
// Rows returned by Dirty must be durable before the answer that made them
// leaves. Then a restarted peer breaks no promise. What is forgotten (leases,
// the progress of a proposal) costs time only.
package quorum
