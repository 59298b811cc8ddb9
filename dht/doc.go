// Package dht connects this peer to the other peers of its swarm. It runs a libp2p host (QUIC and
// TCP, one Ed25519 identity) and Kademlia under the swarm's own protocol prefix. It keeps the
// membership of the peer's zone (packages zone and member). Peers call each other with the messages
// of package wire.
//
// # How peers find each other
//
// A peer that starts asks its join addresses and the peers that it knew in its last run. With mDNS
// it also asks the local network. When it reaches one of them, the two exchange the membership, and
// the peer is a member. While a peer is alone it tries again without end, with growing pauses. A
// peer that is not alone tries members that vanished, so that the two halves of a network cut find
// each other again.
//
// Peers outside a zone find it through Kademlia. Each member is a provider of the zone's key, and
// stores its descriptor under "/echo/peer/" and its peer id. The validator of this name space
// refuses a descriptor that the peer's own key did not sign. It also refuses one that is too long
// or expired. Of several valid ones, the highest sequence wins.
//
// # Protocols
//
// PREFIX is "/echo/" and the first 16 hex digits of the charter's digest. So swarms with different
// charters cannot talk to each other.
//
//	/echo-node/charter/1        which charter do you have? answered with one frame
//	/echo-node/admit/1          the handshake of a private swarm, see package handshake
//	PREFIX/kad/1.0.0            Kademlia
//	PREFIX/swim-packet/1 and PREFIX/swim-stream/1    see package member
//	PREFIX/rpc/1                one stream per call: a Request, a Response
//	PREFIX/urgent/1             the same for requests that Options.Priority selects, see lanes
//	PREFIX/vouch/1              where is this member? asked among members, see package guard
//
// # Outsiders
//
// A peer that is not in the View is an outsider. It gets few streams and connections, and never
// those that members need (package guard, lanes). The addresses that a peer announces are claims.
// This peer dials them only as far as it, or members that it asks, saw the claim hold.
//
// # Private swarms
//
// If the charter says that the swarm is private, both sides first show that they were admitted.
// Before that, they speak no protocol under PREFIX. There are three ways to show it: a pass, an
// invite of a member, or the key that the members share. A pass is a chain of signatures from the
// founder's key to the peer's key. An outsider learns that the swarm is private and nothing else.
// Nobody can withdraw a lasting pass: to exclude a peer, found another swarm.
//
// # Tests in fake time
//
// With Options.Host from libp2p's mocknet, everything here runs inside testing/synctest. memberlist
// does not wait for its last probes. So sleep a minute of fake time after Close, before the bubble
// ends.
//
// # After a crash
//
// The directory Options.Dir holds three files that help this peer to come back. peers.json has the
// members last seen and the addresses where this peer met them. charter.sealed has the charter with
// its founder's signature. admission.pass lets this peer into a private swarm. Each file is written
// whole and then renamed, so a crash leaves the old or the new one. The loss of the first two costs
// time but no data. The loss of the pass costs a new invite, or the swarm's key. Kademlia's records
// are not kept: they are published again after a start.
package dht
