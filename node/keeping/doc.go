// Package keeping decides who keeps and who owns each slice, for one peer. It
// is pure: time is an argument, messages are values, nothing is sent or stored
// here. Package node carries its messages and writes its rows.
//
// # Configs
//
// Each slice has a chain of Configs. The first is {founder; founder}, by the
// charter, so nothing has to be agreed before a swarm begins. Which Config
// follows is decided by single-decree Paxos among the keepers of the present
// one (Lamport, "The part-time parliament"; a chain of Configs as in Lamport,
// Malkhi and Zhou, "Reconfiguring a state machine", with a window of one): a
// majority of them accepts it. Two majorities meet, so there is one successor.
//
// The present owner may propose with the least ballot at once, as a leader does
// in Multi-Paxos. Anybody else prepares a higher ballot first.
//
// # Leases
//
// A peer acts in a slice, that is fetches and acknowledges, only while a
// majority of its keepers, itself counted, has leased it to the peer: a keeper
// grants LeaseGrant, the owner counts LeaseHold from the moment it asked, so
// clocks need not agree, only run at about the same speed. A keeper that has
// leased a slice promises nothing to anybody but the owner. A keeper that has
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
// A slice's log belongs to its owner; a keeper follows it. Positions go on over
// generations: Config.Starts says where the log of each generation began, so a
// keeper that comes back cuts what a dead generation wrote above that and
// follows on. What was cut was never acknowledged: an acknowledged position is
// at a majority, a successor is chosen by a majority that from its promise on
// takes nothing from the old owner, and the keeper with the longest log of that
// majority becomes the owner, whoever campaigned.
//
// Rows stay where logs are cut. The rows of a slice merge (store.ImportRows is
// a join), so a row too many is harmless, and digests find it.
//
// # Forks
//
// When a majority of a slice's keepers is gone for good, a survivor adopts the
// slice: a new Epoch, without anybody's consent. Two may do so apart. The
// higher (Epoch, Fork, Gen) wins wherever two meet, and whoever has a copy of
// another fork has its rows united with the winner's first.
//
// # After a crash
//
// Rows returned by Dirty must be durable before the answer that made them
// leaves. Then a restarted peer breaks no promise. What is forgotten (leases,
// the progress of a proposal) costs time only.
package keeping
