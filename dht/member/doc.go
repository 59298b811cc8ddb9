// Package member says who is alive: it runs memberlist (SWIM with Lifeguard)
// over a libp2p host, so that a peer has one identity, one port and one layer
// of encryption, and turns its events into Views.
//
// A node's name is its peer id, its address a made-up one that follows from
// the id (memberlist insists on an IP). What a member says of itself is a
// wire.Descriptor, sealed by its own key and carried as memberlist's metadata:
// nobody can declare another's capacity, location or addresses. That somebody
// is dead or has left anyone may claim, as ever in SWIM; here that is only a
// suspicion, whatever the claim says, which the accused refutes within the
// suspicion time, and every peer finds a death for itself. So a View is a hint, never a truth that two peers share.
//
// Packets travel as frames on one long-lived stream per peer and direction,
// protocol Prefix+"/swim-packet/1": an unsigned varint of the length, 1 to
// MaxPacket, then the packet. What memberlist sends over TCP is a stream of
// protocol Prefix+"/swim-stream/1". Both are vetted before memberlist parses
// them: only the kinds of message that a List sends pass, never compressed or
// encrypted ones, and no push of more states than MaxStates.
//
// After a crash nothing of this package is left, and nothing needs to be: the
// sequence of a descriptor is taken from the clock, and who finds its own
// descriptor with a higher one in the gossip goes beyond it. The others hold
// the old incarnation as alive or dead; on contact the restarted peer refutes.
package member
