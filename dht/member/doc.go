// Package member says which peers are alive. It runs memberlist (SWIM with Lifeguard) over a
// libp2p host, so that a peer has one identity, one port and one layer of encryption. It turns
// memberlist's events into Views.
//
// A node's name is its peer id. Its address is derived from the id, because memberlist requires
// an IP address. What a member declares about itself is a wire.Descriptor. The member seals it
// with its own key, and memberlist carries it as metadata. So no peer can declare the capacity,
// location or addresses of another one. As always in SWIM, any peer may claim that a member is
// dead or has left. Here that is only a suspicion, whatever the claim says. The accused member
// refutes it within the suspicion time, and every peer detects a death itself. So a View is
// local knowledge: two peers never share one true View.
//
// Packets travel as frames on one long-lived stream per peer and direction, protocol
// Prefix+"/swim-packet/1": an unsigned varint of the length, 1 to MaxPacket, then the packet.
// What memberlist sends over TCP is a stream of protocol Prefix+"/swim-stream/1". Both are
// checked before memberlist parses them. Only the kinds of message that a List sends pass. No
// compressed or encrypted message passes, and no push of more states than MaxStates.
//
// This package keeps nothing over a crash, and needs nothing. The sequence of a descriptor
// comes from the clock. A peer that finds its own descriptor with a higher sequence in the
// gossip uses a still higher one. The others treat the peer's old incarnation as alive or dead;
// on contact the restarted peer refutes that.
package member
