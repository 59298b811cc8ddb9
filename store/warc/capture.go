package warc

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/echo-node/echo-node/store"
)

// MaxPayloads is the number of bodies that a Writer remembers, about 20 MiB of memory. A later body
// that equals a forgotten one is written again.
const MaxPayloads = 1 << 16

const (
	mediaRequest    = "application/http; msgtype=request"
	mediaResponse   = "application/http; msgtype=response"
	identicalDigest = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
	notModified     = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
)

// payload says where a body is: in the response with that id.
type payload struct{ id, uri, date, digest string }

// captures writes the captures of r. It returns the id of the response that has the content of r.
func (w *Writer) captures(r store.Record) (newest string, err error) {
	versions := map[string]payload{} // the versions written, by date
	for _, c := range r.Captures {
		switch {
		case c.Revisit != "":
			err = w.revisit(r, c, versions)
		case len(c.Response) > 0:
			var id string
			if id, err = w.exchange(r, c, versions); c.Status == r.Status && c.Digest == r.Digest &&
				c.Redirect == r.Redirect {
				newest = id
			}
		case c.Record != nil:
			err = w.metadata(*c.Record, "")
		}
		if err != nil {
			return "", err
		}
	}
	return newest, nil
}

// exchange writes a version and returns the id of its response or revisit.
func (w *Writer) exchange(r store.Record, c store.Capture, versions map[string]payload) (id string, err error) {
	sum := sha256.Sum256(c.Body)
	h := header{kind: "response", date: c.At, media: mediaResponse}
	h.add("WARC-Target-URI", r.URL)
	h.add("WARC-IP-Address", c.Addr)
	h.add("WARC-Protocol", protocol(c.Protocol))
	h.add("WARC-Payload-Digest", digest(sum[:]))
	first, again := w.seen[digest(sum[:])]
	if again = again && len(c.Body) > 0 && !c.Cut; again {
		h.kind = "revisit"
		h.refer(identicalDigest, first)
		block := responseHead(c.Response, -1)
		h.id = recordID(h.kind, string(r.Key), c.At, block)
		err = w.write(h, block)
	} else {
		if c.Cut {
			h.add("WARC-Truncated", "length")
		}
		block := responseHead(c.Response, len(c.Body))
		h.id = recordID(h.kind, string(r.Key), c.At, block, c.Body)
		first = payload{h.id, oneLine(r.URL), date(c.At), digest(sum[:])}
		if len(c.Body) > 0 && !c.Cut {
			w.learn(first)
		}
		err = w.write(h, block, c.Body)
	}
	versions[date(c.At)] = first
	if err != nil || len(c.Request) == 0 {
		return h.id, err
	}
	q := header{kind: "request", id: recordID("request", string(r.Key), c.At, c.Request), date: c.At,
		media: mediaRequest}
	q.add("WARC-Target-URI", r.URL)
	q.add("WARC-IP-Address", c.Addr)
	q.add("WARC-Protocol", protocol(c.Protocol))
	q.add("WARC-Concurrent-To", "<"+h.id+">")
	return h.id, w.write(q, c.Request, []byte("\r\n"))
}

// revisit writes a visit that found nothing new, if the file has the version to which it refers.
func (w *Writer) revisit(r store.Record, c store.Capture, versions map[string]payload) error {
	of, ok := versions[date(c.Of)]
	if !ok || c.Of.IsZero() {
		return nil
	}
	h := header{kind: "revisit", date: c.At, media: mediaResponse}
	h.add("WARC-Target-URI", r.URL)
	h.add("WARC-IP-Address", c.Addr)
	h.add("WARC-Protocol", protocol(c.Protocol))
	profile := notModified
	if c.Revisit == store.Identical {
		profile = identicalDigest
		h.add("WARC-Payload-Digest", of.digest)
	}
	h.refer(profile, of)
	block := responseHead(c.Response, -1)
	h.id = recordID(h.kind, string(r.Key), c.At, block)
	return w.write(h, block)
}

// refer adds the fields of a revisit that point to the response with the body.
func (h *header) refer(profile string, to payload) {
	h.add("WARC-Profile", profile)
	h.add("WARC-Refers-To", "<"+to.id+">")
	h.add("WARC-Refers-To-Target-URI", to.uri)
	h.add("WARC-Refers-To-Date", to.date)
}

// learn remembers p, unless its body is known or MaxPayloads bodies are.
func (w *Writer) learn(p payload) {
	if _, had := w.seen[p.digest]; !had && len(w.seen) < MaxPayloads {
		w.seen[p.digest] = p
	}
}

// protocol returns the WARC-Protocol name of a protocol name of net/http.
func protocol(p string) string {
	switch p {
	case "":
		return ""
	case "HTTP/2.0":
		return "h2"
	}
	return strings.ToLower(p)
}

// responseHead returns the head of a response, adapted to the stored body. It has no
// Content-Encoding and no Transfer-Encoding, and a Content-Length of size bytes. When size is below
// 0, there is no body and no Content-Length. The original fields stay under another name.
func responseHead(head []byte, size int) []byte {
	if len(head) == 0 {
		return nil
	}
	var b bytes.Buffer
	for line := range bytes.Lines(head) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch strings.ToLower(string(name)) {
		case "content-encoding", "transfer-encoding":
			b.WriteString("X-Archive-Orig-")
		case "content-length":
			if string(bytes.TrimSpace(value)) == fmt.Sprint(size) {
				continue // written below
			}
			b.WriteString("X-Archive-Orig-")
		}
		b.Write(line)
	}
	if size >= 0 {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", size)
	}
	b.WriteString("\r\n")
	return b.Bytes()
}
