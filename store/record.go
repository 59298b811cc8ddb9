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

// Record is what one fetch produced, with provenance. Its JSON is the line of
// an export (CLI.md, "Records"). Times are UTC.
type Record struct {
	V         int           `json:"v"`
	Key       partition.Key `json:"key"`
	Kind      string        `json:"kind"`           // page, profile, post, edges: KindPage, …
	Post      string        `json:"post,omitempty"` // of a post: its URI, unique in its Key, the same after an edit
	URL       string        `json:"url"`
	FetchedAt time.Time     `json:"fetched_at"`
	Source    string        `json:"source"` // name of the crawler.Source
	Peer      string        `json:"peer"`   // who fetched it
	// who brought it here, if that is neither its fetcher nor a replica
	Via         string        `json:"via,omitempty"`
	Status      int           `json:"status"` // HTTP status
	Digest      string        `json:"digest"` // "sha256:hex" of the decoded body
	Title       string        `json:"title"`
	Text        string        `json:"text"`
	Description string        `json:"description,omitempty"` // as declared
	Author      string        `json:"author,omitempty"`      // as declared; several with commas
	Canonical   partition.Key `json:"canonical,omitempty"`   // the page that it declares to be a copy of
	Lang        string        `json:"lang,omitempty"`        // BCP 47; "und" or "" unknown
	Place       *Place        `json:"place,omitempty"`
	// the days that the text speaks of, at most MaxPeriod, in order
	Period []Interval `json:"period,omitempty"`
	Copies string     `json:"copies,omitempty"` // fingerprint of the text, see Fingerprint
	// whether it belongs to the collected community; accounts only
	Verdict     *Verdict      `json:"verdict,omitempty"`
	Declared    []string      `json:"declared,omitempty"` // where it says it is, as text: geo metadata, addresses
	PublishedAt *time.Time    `json:"published_at,omitempty"`
	Links       []Link        `json:"links,omitempty"`
	ETag        string        `json:"etag,omitempty"`
	Modified    string        `json:"last_modified,omitempty"` // header Last-Modified, verbatim
	MediaType   string        `json:"media_type,omitempty"`
	Size        int64         `json:"size,omitempty"`      // of kind media: bytes of the file
	Redirect    partition.Key `json:"redirect,omitempty"`  // where a 3xx points
	NoIndex     bool          `json:"noindex,omitempty"`   // robots: Text is empty and the record is not indexed
	NoArchive   bool          `json:"noarchive,omitempty"` // robots: neither its body nor its versions are kept
	// links or text are left out: it would be over MaxRecordBytes
	Cut bool            `json:"cut,omitempty"`
	Raw json.RawMessage `json:"raw,omitempty"` // the source's own object, for social sources

	// Deleted: the post is gone at its service. Text, media and earlier versions are
	// gone here too; what stays says that there was one: Key, Kind, Post, URL, By,
	// PublishedAt, and by FetchedAt, Source, Peer, Status and Reason how that is known.
	Deleted bool   `json:"deleted,omitempty"`
	Reason  string `json:"reason,omitempty"`

	// Of social sources, all optional; see Social.
	Social

	// Edits are the earlier versions of a post, the latest first. They are the
	// store's to fill in: what a Commit says here is not looked at.
	Edits []Edit `json:"edits,omitempty"`

	// Edges and Walks are what is kept of a list, in an export that asks for them
	// and in `show`; they are no part of what is stored as the record.
	Edges []Edge `json:"edges,omitempty"`
	Walks []Walk `json:"walks,omitempty"`
	Gap   *Gap   `json:"gap,omitempty"` // of kind KindGap, in an export alone

	// Captures are the visits to Key that are kept (Store.Captures), in an export
	// that asks for them; they are no part of what is stored as the record.
	Captures []Capture `json:"captures,omitempty"`
}

// Fit is r as JSON of at most MaxRecordBytes, and what that has of it: of too
// large a record its links go, from the end, then text, then the source's own
// object. So no record is too large for a message, whoever made it; an error is
// one of JSON, or of a record that is too large without all that.
func (r *Record) Fit() (Record, []byte, error) { return r.FitTo(MaxRecordBytes) }

// FitTo is fit for at most limit bytes. What a source brings of its own goes
// first where a text is meant to be small.
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

// Unload takes out what is no part of what is stored as a record.
func (r *Record) Unload() { r.Captures, r.Edges, r.Walks, r.Gap = nil, nil, nil, nil }

// halve shortens the lists of what is said beside the text; false when there is
// nothing left of them.
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

// maxCounts is how many figures a service may give of one thing.
const maxCounts = 64

// PlainJSON is JSON without the escapes that HTML would need: they sextuple a
// text of nothing but brackets.
func PlainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Merged says whether r is found under another Key: its page declares itself a
// copy of one of the same domain. (Of another domain, only that page could say.)
func (r *Record) Merged() bool {
	return r.Canonical != "" && r.Canonical != r.Key &&
		partition.Domain(r.Canonical.Host()) == partition.Domain(r.Key.Host())
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
	Lang     string        `json:"hreflang,omitempty"` // of the other page, as declared
	// when the other page changed last, as a sitemap or a feed declares
	Modified *time.Time `json:"lastmod,omitempty"`
}
