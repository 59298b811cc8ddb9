package store

import (
	"encoding/json"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// RecordVersion is the version of the Record format (field "v").
const RecordVersion = 1

// Record is what one fetch produced, with provenance. Its JSON is the line of
// an export (CLI.md, "Records"). Times are UTC.
type Record struct {
	V           int             `json:"v"`
	Key         partition.Key   `json:"key"`
	Kind        string          `json:"kind"` // page, profile, post, edges
	URL         string          `json:"url"`
	FetchedAt   time.Time       `json:"fetched_at"`
	Source      string          `json:"source"` // name of the crawler.Source
	Peer        string          `json:"peer"`   // who fetched it
	Status      int             `json:"status"` // HTTP status
	Digest      string          `json:"digest"` // "sha256:hex" of the decoded body
	Title       string          `json:"title"`
	Text        string          `json:"text"`
	Lang        string          `json:"lang,omitempty"` // BCP 47, "" unknown
	Place       *Place          `json:"place,omitempty"`
	PublishedAt *time.Time      `json:"published_at,omitempty"`
	Links       []Link          `json:"links,omitempty"`
	ETag        string          `json:"etag,omitempty"`
	Modified    string          `json:"last_modified,omitempty"` // header Last-Modified, verbatim
	MediaType   string          `json:"media_type,omitempty"`
	Redirect    partition.Key   `json:"redirect,omitempty"` // where a 3xx points
	NoIndex     bool            `json:"noindex,omitempty"`  // robots: Text is empty and the record is not indexed
	Raw         json.RawMessage `json:"raw,omitempty"`      // the source's own object, for social sources
}

// Place is where a record is from.
type Place struct {
	Name       string  `json:"name"`
	Country    string  `json:"country"` // ISO 3166-1 alpha-2
	Lat        float64 `json:"lat"`
	Lon        float64 `json:"lon"`
	Confidence float64 `json:"confidence"` // 0 to 1
}

// Link is one reference found in a record.
type Link struct {
	Key      partition.Key `json:"key"`
	Anchor   string        `json:"anchor,omitempty"`
	Rel      string        `json:"rel,omitempty"`      // space-separated, lower case
	NoFollow bool          `json:"nofollow,omitempty"` // kept, not admitted
}
