// Package wire defines the messages between peers and their framing.
//
// # Framing
//
// A stream carries frames: one Request in one direction and one Response in the other. A frame
// is, byte by byte:
//
//	1 to 4 bytes  length of what follows, unsigned varint, shortest form,
//	              2 to MaxFrame+2
//	1 byte        version of the framing, FrameVersion (1)
//	1 byte        flags; bit 0: the body is compressed with zstd; the others
//	              are 0, and a frame with any of them set is refused
//	n bytes       body: one protobuf message of wire.proto, or one zstd frame
//	              that decodes to one
//
// A body longer than 512 bytes is compressed when that makes it shorter. Neither the body as
// sent nor the decoded body may exceed MaxFrame.
//
// # Limits
//
// The other peer may be hostile. So before protobuf allocates anything, a scan of the body
// counts the elements of every repeated field and the total of nested messages. It compares
// them with the named limits in limits.go. After decoding, Validate checks lengths,
// enumerations and that there is exactly one body. An error of either names the limit. Unknown
// fields are skipped, so that a newer peer may add some. An unknown body gives ErrNoBody, and a
// server responds to it with CODE_UNSUPPORTED.
//
// # Descriptors
//
// A peer declares its addresses, location, capacity and version. The metadata of the membership
// and the DHT carry this in one form, sealed with the peer's own key; see Seal. The charter of
// a swarm is sealed with its founder's key; see SealCharter. A peer that joins a private swarm
// shows a Pass, a chain of signatures that begins with the founder's.
//
// The package does not know streams, clocks or peers: the caller sets deadlines.
package wire

//go:generate protoc --go_out=. --go_opt=paths=source_relative wire.proto descriptor.proto admission.proto
