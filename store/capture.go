package store

import (
	"bytes"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// Limits of the captures of one Key.
const (
	MaxVersions  = 8  // including the latest if its body is stored
	MaxRevisits  = 16 // visits that found nothing new
	MaxCaptures  = MaxVersions + MaxRevisits
	MaxBodyBytes = 2 << 20  // of a body; the rest is not stored
	MaxHeadBytes = 16 << 10 // of the first line and header of a message; the rest is not stored
	MaxAddr      = 64
)

// Values of Capture.Revisit.
const (
	Identical   = "identical"    // the response had the digest of the version before
	NotModified = "not-modified" // the response was a 304
)

// Capture is one visit to a Key. A version (Revisit "") is either the exchange with its body, or,
// where bodies are not stored, the Record as it was when the next version replaced it.
type Capture struct {
	Key      partition.Key `json:"key"`
	At       time.Time     `json:"at"`                // unique in its Key; UTC, microseconds
	Revisit  string        `json:"revisit,omitempty"` // "" is a version
	Of       time.Time     `json:"of,omitzero"`       // of a revisit: At of its version; or zero
	Status   int           `json:"status"`
	Digest   string        `json:"digest,omitempty"` // of the Record
	Redirect partition.Key `json:"redirect,omitempty"`
	Peer     string        `json:"peer,omitempty"`
	Addr     string        `json:"addr,omitempty"`     // IP address of the server
	Protocol string        `json:"protocol,omitempty"` // as HTTP/2.0
	Request  []byte        `json:"request,omitempty"`  // line and header as in HTTP/1.1, with CR LF
	Response []byte        `json:"response,omitempty"` // the same for the response
	Body     []byte        `json:"body,omitempty"`     // without Content-Encoding
	Cut      bool          `json:"cut,omitempty"`      // Body is not complete
	Record   *Record       `json:"record,omitempty"`
}

// Matches reports whether c shows the same page as r.
func (c *Capture) Matches(r *Record) bool {
	return c.Status == r.Status && c.Digest == r.Digest && c.Redirect == r.Redirect
}

// Clip cuts c to the limits.
func (c *Capture) Clip() {
	c.Request, c.Response = clipHead(c.Request), clipHead(c.Response)
	if len(c.Body) > MaxBodyBytes {
		c.Body, c.Cut = c.Body[:MaxBodyBytes], true
	}
}

// clipHead cuts b to MaxHeadBytes, between two lines.
func clipHead(b []byte) []byte {
	if len(b) > MaxHeadBytes {
		b = b[:bytes.LastIndexByte(b[:MaxHeadBytes], '\n')+1]
	}
	return b
}

// Shows reports whether r and b show the same page.
func (r *Record) Shows(b *Record) bool {
	return r.Status == b.Status && r.Digest == b.Digest && r.Redirect == b.Redirect
}

// Archived reports whether r's body and versions may be stored. A site can forbid it.
func (r *Record) Archived() bool { return !r.NoIndex && !r.NoArchive }
