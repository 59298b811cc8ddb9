package wire

import (
	"errors"
	"fmt"
)

// Limits on what is read from another peer, and so on what may be sent.
const (
	// MaxFrame is the largest body of a frame in bytes, compressed or not.
	MaxFrame = 4 << 20
	// MaxLinks is the most links of a Forward, and answers of its ack.
	MaxLinks = 5000
	// MaxKey is the longest Key in bytes, of a link, a referrer or a cursor.
	MaxKey = 4096
	// MaxText is the longest title, snippet, reason or other short text.
	MaxText = 4096
	// MaxQuery is the longest query text in bytes.
	MaxQuery = 1024
	// MaxSlices is the most slices that one message names.
	MaxSlices = 1 << 17
	// MaxTerms is the most terms of one TermStats.
	MaxTerms = 1024
	// MaxOpaque is the longest encoding of statistics by the index.
	MaxOpaque = 1 << 20
	// MaxHits is the most hits of one answer, and the highest Query.limit.
	MaxHits = 10_000
	// MaxPrint is the longest print of a hit in bytes.
	MaxPrint = 8 << 10
	// MaxWords is the longest print of a Copy in bytes, MaxCopies the most of an
	// answer, MaxPrints the most prints of a question.
	MaxWords  = 20 << 10
	MaxCopies = 2000
	MaxPrints = 64
	// MaxRows is the most rows of one message: of all pieces of a Replicate, of a page.
	MaxRows = 50_000
	// MaxPieces is the most pieces of a Replicate, and progress reports of its answer.
	MaxPieces = 4096
	// MaxConfigs is the most ReplicaSets or proposals of one message.
	MaxConfigs = 4096
	// MaxConfigKeepers is the most replicas of a ReplicaSet, MaxConfigStarts the most
	// generations that it remembers.
	MaxConfigKeepers = 7
	MaxConfigStarts  = 32
	// MaxDigests is the length of the digests of a slice in bytes.
	MaxDigests = 256 * 8
	// MaxRowKey is the longest key of a row in bytes.
	MaxRowKey = 8192
	// MaxPart is the longest place of a capture, a post, an edge or a gap among
	// those of its Key in bytes.
	MaxPart = MaxKey + 16
	// MaxRecords is the most records of one page, and the highest Records.limit.
	MaxRecords = 10_000
	// MaxPeers is the most peer ids or addresses that one answer names.
	MaxPeers = 64
	// MaxPeerID is the longest peer id or address, as text.
	MaxPeerID = 512
	// MaxElements is the most elements of all kinds in one message: nested
	// messages, items of repeated fields, entries of maps.
	MaxElements = 300_000
	// MaxTurns is the most addresses of a Turns, MaxAddress the longest one as
	// text, MaxTurnMs the longest time that one is about, in milliseconds.
	MaxTurns   = 1000
	MaxAddress = 64
	MaxTurnMs  = 3600_000
	// MaxDescriptor is the longest sealed descriptor in the DHT in bytes.
	MaxDescriptor = 2048
	// MaxAddrs is the most addresses of a descriptor.
	MaxAddrs = 16
	// MaxAddr is the longest binary multiaddr in bytes.
	MaxAddr = 128
	// MaxVersion is the longest version text of a descriptor.
	MaxVersion = 64
	// MaxCharter is the longest JSON of a charter in bytes.
	MaxCharter = 16 << 10
)

// What is wrong with a frame or a message; errors of this package wrap one.
var (
	ErrTooLarge  = errors.New("over a limit")
	ErrFrame     = errors.New("not a frame")
	ErrVersion   = errors.New("unknown version")
	ErrNoBody    = errors.New("no known body")
	ErrMalformed = errors.New("malformed message")
	ErrSignature = errors.New("bad signature")
	ErrExpired   = errors.New("expired")
)

// over is the error of a limit that was passed.
func over(what string, n, limit int) error {
	return fmt.Errorf("%s: %d, the limit is %d: %w", what, n, limit, ErrTooLarge)
}
