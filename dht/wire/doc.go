// Package wire is the messages between peers and their framing.
//
// # Framing
//
// A stream carries frames, one Request one way and one Response the other.
// A frame is, byte by byte:
//
//	1 to 4 bytes  length of what follows, unsigned varint, shortest form,
//	              2 to MaxFrame+2
//	1 byte        version of the framing, FrameVersion (1)
//	1 byte        flags; bit 0: the body is compressed with zstd; the others
//	              are 0, and a frame with any of them set is refused
//	n bytes       body: one protobuf message of wire.proto, or one zstd frame
//	              that decodes to one
//
// A body longer than 512 bytes is compressed when that makes it shorter.
// Neither the body as sent nor the body as decoded may exceed MaxFrame.
//
// # Caps
//
// Whoever is at the other end may be hostile, so before protobuf allocates
// anything a scan of the body counts the elements of every repeated field and
// the total of nested messages against the named limits of limits.go; after
// decoding, Validate checks lengths, enumerations and that there is exactly
// one body. An error of either says which limit it was. Unknown fields are
// skipped, so that a newer peer may add some; an unknown body reads as
// ErrNoBody, which a server answers with CODE_UNSUPPORTED.
//
// # Descriptors
//
// What a peer says of itself (addresses, location, capacity, version) travels
// in the metadata of the membership and in the DHT in one form, sealed by the
// peer's own key; see Seal. The charter of a swarm travels sealed by the key
// of its founder; see SealCharter. Who may come into a private swarm shows a
// Pass, a chain of signatures that begins with the founder's.
//
// The package knows no streams, clocks or peers: deadlines are the caller's.
package wire

//go:generate protoc --go_out=. --go_opt=paths=source_relative wire.proto descriptor.proto admission.proto
