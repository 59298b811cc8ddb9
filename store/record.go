package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/echo-node/echo-node/partition"
)

// RecordVersion is the version of the Record format (field "v").
const RecordVersion = 1

// Record is the result of one fetch, with provenance. Its JSON is one line of an export
// (docs/formats.md). Times are UTC.
type Record struct {
	V         int           `json:"v"`
	Key       partition.Key `json:"key"`
	Kind      string        `json:"kind"`           // page, profile, post, edges: KindPage, …
	Post      string        `json:"post,omitempty"` // URI of a post, unique in Key; edits keep it
	URL       string        `json:"url"`
	FetchedAt time.Time     `json:"fetched_at"`
	Source    string        `json:"source"` // name of the crawler.Source
	Peer      string        `json:"peer"`   // the peer that fetched it
	// the peer that brought it here, if that is neither its fetcher nor a replica
	Via         string        `json:"via,omitempty"`
	Status      int           `json:"status"` // HTTP status
	Digest      string        `json:"digest"` // "sha256:hex" of the decoded body
	Title       string        `json:"title"`
	Text        string        `json:"text"`
	Description string        `json:"description,omitempty"` // as declared
	Author      string        `json:"author,omitempty"`      // as declared; several with commas
	Canonical   partition.Key `json:"canonical,omitempty"`   // it declares itself a copy of this
	Lang        string        `json:"lang,omitempty"`        // BCP 47; "und" or "" unknown
	Place       *Place        `json:"place,omitempty"`
	// the days that the text is about, at most MaxPeriod, in order
	Period []Interval `json:"period,omitempty"`
	Copies string     `json:"copies,omitempty"` // fingerprint of the text, see Fingerprint
	// whether it belongs to the collected community; accounts only
	Verdict     *Verdict      `json:"verdict,omitempty"`
	Declared    []string      `json:"declared,omitempty"` // geo metadata, addresses, as text
	PublishedAt *time.Time    `json:"published_at,omitempty"`
	Links       []Link        `json:"links,omitempty"`
	ETag        string        `json:"etag,omitempty"`
	Modified    string        `json:"last_modified,omitempty"` // header Last-Modified, verbatim
	MediaType   string        `json:"media_type,omitempty"`
	Size        int64         `json:"size,omitempty"`      // of kind media: bytes of the file
	Redirect    partition.Key `json:"redirect,omitempty"`  // where a 3xx points
	NoIndex     bool          `json:"noindex,omitempty"`   // robots: no Text, not indexed
	NoArchive   bool          `json:"noarchive,omitempty"` // robots: no body or version is stored
	// links or text are missing, because the record would exceed MaxRecordBytes
	Cut bool            `json:"cut,omitempty"`
	Raw json.RawMessage `json:"raw,omitempty"` // the source's own object, for social sources

	// Deleted means that the service no longer has the post. Text, media and earlier versions are
	// deleted here too. Key, Kind, Post, URL, By and PublishedAt stay, to say that there was a
	// post. FetchedAt, Source, Peer, Status and Reason say how the deletion is known.
	Deleted bool   `json:"deleted,omitempty"`
	Reason  string `json:"reason,omitempty"`

	// For social sources, all optional; see Social.
	Social

	// Edits are the earlier versions of a post, the latest first. The store fills them in and
	// ignores them in a Commit.
	Edits []Edit `json:"edits,omitempty"`

	// Edges and Walks are the stored data of a list, in `show` and in an export that requests them.
	// They are not stored as part of the record.
	Edges []Edge `json:"edges,omitempty"`
	Walks []Walk `json:"walks,omitempty"`
	Gap   *Gap   `json:"gap,omitempty"` // of kind KindGap, only in an export

	// Captures are the stored visits to Key (Archive.Captures), in an export that requests them.
	// They are not stored as part of the record.
	Captures []Capture `json:"captures,omitempty"`
}

// Fit returns r as JSON of at most MaxRecordBytes, and the Record in that JSON. A record that is
// too large loses its links, from the end, then text, then the source's own object. So every record
// fits into a message. The error is one of JSON, or says that the record is too large even without
// all these.
func (r *Record) Fit() (Record, []byte, error) { return r.FitTo(MaxRecordBytes) }

// FitTo is like Fit for at most limit bytes. For a small limit, the source's own object is removed
// first.
func (r *Record) FitTo(limit int) (Record, []byte, error) {
	out := *r
	out.Unload()
	for {
		b, err := PlainJSON(&out)
		if err != nil || len(b) <= limit {
			return out, b, err
		}
		longest := &out.Text
		for _, s := range []*string{&out.Title, &out.Description, &out.Author} {
			if len(*s) > len(*longest) {
				longest = s
			}
		}
		out.Cut = true
		switch {
		case limit < MaxRecordBytes && len(out.Raw) > 0:
			out.Raw = nil
		case len(out.Links) > 0:
			out.Links = out.Links[:len(out.Links)/2]
		case len(*longest) > 0:
			*longest = Clip(*longest, len(*longest)/2)
		case len(out.Raw) > 0:
			out.Raw = nil
		case out.halve():
		default:
			return Record{}, nil, fmt.Errorf("%d bytes without links and text, at most %d", len(b), limit)
		}
	}
}

// Unload removes the fields that are not stored in a record.
func (r *Record) Unload() { r.Captures, r.Edges, r.Walks, r.Gap = nil, nil, nil, nil }

// halve shortens the lists of data besides the text. It returns false when they are empty.
func (s *Social) halve() bool {
	left := len(s.Mentions) + len(s.Media) + len(s.Tags) + len(s.Fields) + len(s.Choices) + len(s.Flags) + max(
		len(s.Counts)-maxCounts, 0)
	s.Mentions, s.Media, s.Tags = s.Mentions[:len(s.Mentions)/2], s.Media[:len(s.Media)/2], s.Tags[:len(s.Tags)/2]
	s.Fields, s.Choices, s.Flags = s.Fields[:len(s.Fields)/2], s.Choices[:len(s.Choices)/2], s.Flags[:len(s.Flags)/2]
	if len(s.Counts) > maxCounts {
		s.Counts = nil
	}
	return left > 0
}

// maxCounts is the maximum number of figures that a service may give about one record.
const maxCounts = 64

// PlainJSON returns JSON without HTML escapes, which make a text of brackets six times as long.
func PlainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Merged reports whether r is found under another Key, because its page declares itself a copy of a
// page of the same domain. (For another domain, only the original page could say so.)
func (r *Record) Merged() bool {
	return r.Canonical != "" && r.Canonical != r.Key &&
		partition.Domain(r.Canonical.Host()) == partition.Domain(r.Key.Host())
}

// Place is the location that a record belongs to.
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
	NoFollow bool          `json:"nofollow,omitempty"` // stored, but not admitted
	Lang     string        `json:"hreflang,omitempty"` // of the other page, as declared
	// when the other page last changed, as a sitemap or feed declares
	Modified *time.Time `json:"lastmod,omitempty"`
}
