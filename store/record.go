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
	Description string          `json:"description,omitempty"` // as declared
	Author      string          `json:"author,omitempty"`      // as declared; several with commas
	Canonical   partition.Key   `json:"canonical,omitempty"`   // the page that it declares to be a copy of
	Lang        string          `json:"lang,omitempty"`        // BCP 47; "und" or "" unknown
	Place       *Place          `json:"place,omitempty"`
	Period      []Interval      `json:"period,omitempty"`   // the days that the text speaks of, at most MaxPeriod, in order
	Copies      string          `json:"copies,omitempty"`   // fingerprint of the text, see Fingerprint
	Verdict     *Verdict        `json:"verdict,omitempty"`  // whether it belongs to the collected community; accounts only
	Declared    []string        `json:"declared,omitempty"` // where it says it is, as text: geo metadata, addresses
	PublishedAt *time.Time      `json:"published_at,omitempty"`
	Links       []Link          `json:"links,omitempty"`
	ETag        string          `json:"etag,omitempty"`
	Modified    string          `json:"last_modified,omitempty"` // header Last-Modified, verbatim
	MediaType   string          `json:"media_type,omitempty"`
	Redirect    partition.Key   `json:"redirect,omitempty"`  // where a 3xx points
	NoIndex     bool            `json:"noindex,omitempty"`   // robots: Text is empty and the record is not indexed
	NoArchive   bool            `json:"noarchive,omitempty"` // robots: neither its body nor its versions are kept
	Cut         bool            `json:"cut,omitempty"`       // links or text are left out: it would be over MaxRecordBytes
	Raw         json.RawMessage `json:"raw,omitempty"`       // the source's own object, for social sources

	// Captures are the visits to Key that are kept (Store.Captures), in an export
	// that asks for them; they are no part of what is stored as the record.
	Captures []Capture `json:"captures,omitempty"`
}

// fit is r as JSON of at most MaxRecordBytes, and what that has of it: of too
// large a record its links go, from the end, then text, then the source's own
// object. So no record is too large for a message, whoever made it; an error is
// one of JSON, or of a record that is too large without all that.
func (r *Record) fit() (Record, []byte, error) {
	out := *r
	out.Captures = nil
	for {
		b, err := plainJSON(&out)
		if err != nil || len(b) <= MaxRecordBytes {
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
		case len(out.Links) > 0:
			out.Links = out.Links[:len(out.Links)/2]
		case len(*longest) > 0:
			*longest = clip(*longest, len(*longest)/2)
		case len(out.Raw) > 0:
			out.Raw = nil
		default:
			return Record{}, nil, fmt.Errorf("%d bytes without links and text, at most %d", len(b), MaxRecordBytes)
		}
	}
}

// plainJSON is JSON without the escapes that HTML would need: they sextuple a
// text of nothing but brackets.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Merged says whether r is found under another Key: its page declares itself a
// copy of one of the same domain. (Of another domain, only that page could say.)
func (r *Record) Merged() bool {
	return r.Canonical != "" && r.Canonical != r.Key && partition.Domain(r.Canonical.Host()) == partition.Domain(r.Key.Host())
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
	Modified *time.Time    `json:"lastmod,omitempty"`  // when the other page changed last, as a sitemap declares
}
