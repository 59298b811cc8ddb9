package warc

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/echo-node/echo-node/store"
)

// Writer writes WARC records. It is not safe for concurrent use. Each call writes whole gzip
// members, with one Write each. It returns errors of the underlying writer; how much was written is
// then unknown.
type Writer struct {
	w    io.Writer
	gz   *gzip.Writer
	b    bytes.Buffer
	seen map[string]payload // by digest
}

// NewWriter returns a Writer on w. It writes nothing yet.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: w, gz: gzip.NewWriter(nil), seen: map[string]payload{}}
}

// Info describes a file.
type Info struct {
	Software string // name/version of the program
	Filename string // "" = unknown
	Made     time.Time
	Query    string // the filters of the export, as a query string; "" = everything
}

// Info writes the warcinfo record at the start of a file.
func (w *Writer) Info(i Info) error {
	var b bytes.Buffer
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\r\n", name, oneLine(value))
		}
	}
	line("software", i.Software)
	line("format", "WARC File Format 1.1")
	line("conformsTo", "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/")
	line("robots", "RFC 9309")
	line("description", strings.TrimSpace("export of records "+i.Query))
	h := header{kind: "warcinfo", id: recordID("warcinfo", i.Filename, i.Made, b.Bytes()), date: i.Made,
		media: "application/warc-fields"}
	h.add("WARC-Filename", i.Filename)
	return w.write(h, b.Bytes())
}

// Record writes what is known about r's Key. For each version, it writes the request and the
// response, or a revisit when the file has that body already. Then it writes the revisits, and then
// a metadata record with the JSON that is r's line in a jsonl export. A version that is stored only
// as a record becomes a metadata record too.
func (w *Writer) Record(r store.Record) error {
	newest, err := w.captures(r)
	if err != nil {
		return err
	}
	return w.metadata(r, newest)
}

// metadata writes r. about is the id of the response that r was made from, "" when there is none.
func (w *Writer) metadata(r store.Record, about string) error {
	r.Captures = nil
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("warc: %s: %w", r.Key, err)
	}
	body := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	h := header{kind: "metadata", id: recordID("metadata", string(r.Key), r.FetchedAt, body), date: r.FetchedAt,
		media: "application/json"}
	h.add("WARC-Target-URI", r.URL)
	if about != "" {
		h.add("WARC-Refers-To", "<"+about+">")
	}
	return w.write(h, body)
}

// header is the named fields of one record: the ones that all records have, and more.
type header struct {
	kind, id, media string
	date            time.Time
	more            []string // name, value, name, value, ...
}

func (h *header) add(name, value string) {
	if value != "" {
		h.more = append(h.more, name, oneLine(value))
	}
}

// write writes one record from h and the parts of its block.
func (w *Writer) write(h header, block ...[]byte) error {
	w.b.Reset()
	w.gz.Reset(&w.b)
	size, sum := 0, sha256.New()
	for _, part := range block {
		size += len(part)
		_, _ = sum.Write(part) // a hash never returns an error
	}
	var head bytes.Buffer
	fmt.Fprintf(&head, "WARC/1.1\r\nWARC-Type: %s\r\nWARC-Record-ID: <%s>\r\nWARC-Date: %s\r\n", h.kind, h.id,
		date(h.date))
	for i := 0; i < len(h.more); i += 2 {
		fmt.Fprintf(&head, "%s: %s\r\n", h.more[i], h.more[i+1])
	}
	fmt.Fprintf(&head, "WARC-Block-Digest: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", digest(sum.Sum(nil)),
		h.media, size)
	for _, part := range append([][]byte{head.Bytes()}, append(block, []byte("\r\n\r\n"))...) {
		if _, err := w.gz.Write(part); err != nil {
			return fmt.Errorf("warc: %w", err)
		}
	}
	if err := w.gz.Close(); err != nil {
		return fmt.Errorf("warc: %w", err)
	}
	if _, err := w.w.Write(w.b.Bytes()); err != nil {
		return fmt.Errorf("warc: %w", err)
	}
	return nil
}

// date formats t as WARC-Date, with the known fraction of the second.
func date(t time.Time) string { return t.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano) }

func digest(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }

// recordID makes the id of a record from what the record is about and its content. The same record
// has the same id in every file. It is a UUID of version 8, whose bits the program defines (RFC
// 9562 section 5.8).
func recordID(kind, of string, at time.Time, block ...[]byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00", kind, of, date(at))
	for _, part := range block {
		_, _ = h.Write(part)
	}
	u := h.Sum(nil)[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// oneLine replaces control characters, so that a value from outside cannot leave its field.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
