package wire

import (
	"errors"
	"fmt"
)

// Limits on what is read from another peer, and so also on what may be sent.
const (
	// MaxFrame is the largest body of a frame in bytes, compressed or not.
	MaxFrame = 4 << 20
	// MaxLinks is the largest number of links in a Forward, and of answers in its response.
	MaxLinks = 5000
	// MaxKey is the longest Key of a link, a referrer or a cursor in bytes.
	MaxKey = 4096
	// MaxText is the longest title, snippet, reason or other short text in bytes.
	MaxText = 4096
	// MaxQuery is the longest query text in bytes.
	MaxQuery = 1024
	// MaxSlices is the largest number of slices in one message.
	MaxSlices = 1 << 17
	// MaxTerms is the largest number of terms in one TermStats.
	MaxTerms = 1024
	// MaxOpaque is the longest encoding of statistics by the index in bytes.
	MaxOpaque = 1 << 20
	// MaxHits is the largest number of hits in one response, and the highest Query.limit.
	MaxHits = 10_000
	// MaxPrint is the longest fingerprint of a hit in bytes.
	MaxPrint = 8 << 10
	// MaxWords is the longest fingerprint of a Copy in bytes. MaxCopies is the largest number
	// of copies in a response, MaxPrints that of fingerprints in a request.
	MaxWords  = 20 << 10
	MaxCopies = 2000
	MaxPrints = 64
	// MaxRows is the largest number of rows in one message: in all chunks of a Ship, or in a
	// page.
	MaxRows = 50_000
	// MaxPieces is the largest number of chunks in a Ship, and of reports in its response.
	MaxPieces = 4096
	// MaxConfigs is the largest number of ReplicaSets or proposals in one message.
	MaxConfigs = 4096
	// MaxConfigKeepers is the largest number of replicas of a ReplicaSet. MaxConfigStarts is
	// that of the generations that it remembers.
	MaxConfigKeepers = 7
	MaxConfigStarts  = 32
	// MaxDigests is the length of the digests of a slice in bytes.
	MaxDigests = 256 * 8
	// MaxRowKey is the longest key of a row in bytes.
	MaxRowKey = 8192
	// MaxPart is the longest part of a row key, in bytes, that follows the Key of a capture, a
	// post, an edge or a gap.
	MaxPart = MaxKey + 16
	// MaxRecords is the largest number of records in one page, and the highest Records.limit.
	MaxRecords = 10_000
	// MaxPeers is the largest number of peer ids or addresses in one response.
	MaxPeers = 64
	// MaxPeerID is the longest peer id or address, as text, in bytes.
	MaxPeerID = 512
	// MaxElements is the largest number of elements of all kinds in one message: nested
	// messages, items of repeated fields, entries of maps.
	MaxElements = 300_000
	// MaxTurns is the largest number of addresses in a Turns. MaxAddress is the longest address
	// as text. MaxTurnMs is the longest time in one, in milliseconds.
	MaxTurns   = 1000
	MaxAddress = 64
	MaxTurnMs  = 3600_000
	// MaxDescriptor is the longest sealed descriptor in the DHT in bytes.
	MaxDescriptor = 2048
	// MaxAddrs is the largest number of addresses in a descriptor.
	MaxAddrs = 16
	// MaxAddr is the longest binary multiaddr in bytes.
	MaxAddr = 128
	// MaxVersion is the longest version text of a descriptor in bytes.
	MaxVersion = 64
	// MaxCharter is the longest JSON of a charter in bytes.
	MaxCharter = 16 << 10
)

// Errors of a frame or a message. Every error about bytes that a peer sent wraps one of these, an
// error of a pass, or an I/O error.
var (
	ErrTooLarge  = errors.New("over a limit")
	ErrFrame     = errors.New("not a frame")
	ErrVersion   = errors.New("unknown version")
	ErrNoBody    = errors.New("no known body")
	ErrMalformed = errors.New("malformed message")
	ErrSignature = errors.New("bad signature")
	ErrExpired   = errors.New("expired")
)

// over returns the error for a limit that was exceeded.
func over(what string, n, limit int) error {
	return fmt.Errorf("%s: %d, the limit is %d: %w", what, n, limit, ErrTooLarge)
}
