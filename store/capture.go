package store

import (
	"bytes"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Caps of what is kept of the visits to one Key.
const (
	MaxVersions  = 8  // the latest included when its body is kept
	MaxRevisits  = 16 // visits that found nothing new
	MaxCaptures  = MaxVersions + MaxRevisits
	MaxBodyBytes = 2 << 20  // of a body; the rest is not kept
	MaxHeadBytes = 16 << 10 // of a request's or an answer's line and header; further fields are not kept
	MaxAddr      = 64
)

// Words of Capture.Revisit.
const (
	Identical   = "identical"    // the answer had the digest of the version before
	NotModified = "not-modified" // the answer was a 304
)

// Capture is one visit to a Key. A version (Revisit "") is either the exchange
// with its body, or, where bodies are not kept, the Record as it was when the
// next version took its place.
type Capture struct {
	Key      partition.Key `json:"key"`
	At       time.Time     `json:"at"`                // unique among those of the Key; UTC, microseconds
	Revisit  string        `json:"revisit,omitempty"` // "" is a version
	Of       time.Time     `json:"of,omitzero"`       // of a revisit: At of its version; zero = that is not kept
	Status   int           `json:"status"`
	Digest   string        `json:"digest,omitempty"` // that of the Record
	Redirect partition.Key `json:"redirect,omitempty"`
	Peer     string        `json:"peer,omitempty"`
	Addr     string        `json:"addr,omitempty"`     // IP address that answered
	Protocol string        `json:"protocol,omitempty"` // as HTTP/2.0
	Request  []byte        `json:"request,omitempty"`  // line and header fields as of HTTP/1.1, each ended by CR LF
	Response []byte        `json:"response,omitempty"` // the same of the answer
	Body     []byte        `json:"body,omitempty"`     // without Content-Encoding
	Cut      bool          `json:"cut,omitempty"`      // Body is not whole
	Record   *Record       `json:"record,omitempty"`
}

// Matches says whether c shows the page as r does.
func (c *Capture) Matches(r *Record) bool {
	return c.Status == r.Status && c.Digest == r.Digest && c.Redirect == r.Redirect
}

// Clip brings c within the caps.
func (c *Capture) Clip() {
	c.Request, c.Response = clipHead(c.Request), clipHead(c.Response)
	if len(c.Body) > MaxBodyBytes {
		c.Body, c.Cut = c.Body[:MaxBodyBytes], true
	}
}

// clipHead cuts between two lines.
func clipHead(b []byte) []byte {
	if len(b) > MaxHeadBytes {
		b = b[:bytes.LastIndexByte(b[:MaxHeadBytes], '\n')+1]
	}
	return b
}

// Shows says whether r and b show the same page.
func (r *Record) Shows(b *Record) bool {
	return r.Status == b.Status && r.Digest == b.Digest && r.Redirect == b.Redirect
}

// Archived says whether what r is of may be kept: its site does not ask
// otherwise.
func (r *Record) Archived() bool { return !r.NoIndex && !r.NoArchive }
