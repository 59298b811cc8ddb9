// Package dht is this peer in the wide-area overlay: a libp2p host (QUIC and
// TCP, one Ed25519 identity), Kademlia under the swarm's own protocol prefix,
// the membership of the peer's zone (packages zone and member), and calls from
// peer to peer (package wire).
//
// # Who finds whom
//
// A peer that starts asks its join addresses, the peers it knew when it last
// ran, and the local network when mDNS is on. Having reached one, it exchanges
// the membership with it and is in. While it is alone it tries again for ever,
// with backoff; while it is not, it tries members that vanished, so that the
// halves of a cut find each other again.
//
// Strangers find a zone through Kademlia: each member is a provider of the
// zone's key, and stores its descriptor under "/echo/peer/" and its peer id.
// The validator of that name space refuses what the peer's own key did not
// sign, what is too long or expired, and prefers the highest sequence.
//
// # Protocols
//
// PREFIX is "/echo/" and the first 16 hex digits of the charter's digest, so
// swarms with different charters cannot talk to each other.
//
//	/echo-node/charter/1        which charter? answered with one frame
//	/echo-node/admit/1          who are you? of a private swarm, see package handshake
//	PREFIX/kad/1.0.0            Kademlia
//	PREFIX/swim-packet/1 and PREFIX/swim-stream/1    see package member
//	PREFIX/rpc/1                one stream per call: a Request, a Response
//	PREFIX/urgent/1             the same, for what members agree on: see lanes
//	PREFIX/vouch/1              where is that member? among members, see package guard
//
// # Strangers
//
// A peer that is not in the View is an outsider: what it can hold of streams and
// connections is little, and never what members need (package guard, lanes). What
// a peer says of its addresses is a claim, and is dialled only as far as it was
// seen to hold.
//
// # Private swarms
//
// When the charter says that the swarm is private, nothing under PREFIX is
// spoken with a peer before both sides have shown that they were let in: by a
// pass, which is a chain of signatures from the founder's key to theirs, by an
// invite of a member, or by the key that the members share. A stranger is told
// that the swarm is private and nothing else. There is no taking back: who is
// to be kept out again needs another swarm.
//
// # Tests in fake time
//
// With Options.Host from libp2p's mocknet everything here runs inside
// testing/synctest. memberlist does not wait for its last probes: sleep a
// minute of fake time after Close, before the bubble ends.
//
// # After a crash
//
// The directory of Options.Dir holds what helps to come back: peers.json, the
// members last seen and where they were met, charter.sealed, the charter with its founder's
// signature, and admission.pass, what lets this peer into a private swarm. All
// are written whole and renamed; losing the first two costs
// time, not data; for a lost pass a new invite is needed. Kademlia's records are soft state, published again after a
// start.
package dht
