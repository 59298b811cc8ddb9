// Package dht is this peer in the wide-area overlay: a libp2p host (QUIC and
// TCP, one Ed25519 identity), Kademlia under the swarm's own protocol prefix,
// the membership of the peer's zone (package member), and calls from peer to
// peer (package wire).
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
//	PREFIX/kad/1.0.0            Kademlia
//	PREFIX/swim-packet/1 and PREFIX/swim-stream/1    see package member
//	PREFIX/rpc/1                one stream per call: a Request, a Response
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
// members last seen, and charter.sealed, the charter with its founder's
// signature. Both are written whole and renamed; losing them costs time, not
// data. Kademlia's records are soft state, published again after a start.
package dht
