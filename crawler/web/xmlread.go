package web

import (
	"bufio"
	"encoding/xml"
	"errors"
	"io"

	"golang.org/x/net/html/charset"
)

// xmlReader reads the tokens of an XML document within bounds: those of one token are
// looked after while it is read (xmlBytes), those of what is open and of the whole
// document at each token.
type xmlReader struct {
	d     *xml.Decoder
	bytes *xmlBytes
	n     int   // tokens and attributes
	open  []int // namespaces that each open element declares
	names int   // the sum of open
	stop  string
}

func newXMLReader(body io.Reader) *xmlReader {
	x := &xmlReader{bytes: &xmlBytes{from: bufio.NewReader(body)}}
	x.d = xml.NewDecoder(x.bytes)
	x.d.Strict = false
	x.d.CharsetReader = func(label string, rest io.Reader) (io.Reader, error) {
		decoded, err := charset.NewReaderLabel(label, rest)
		if err != nil {
			return nil, err
		}
		x.bytes = &xmlBytes{from: bufio.NewReader(decoded), kind: xmlOther, keep: x.bytes.keep}
		return x.bytes, nil
	}
	return x
}

// errXMLBound is an error for the decoder; the reader's stop says which bound.
var errXMLBound = errors.New("web: xml: a bound was hit")

// next is the next token, valid until the one after. The end of the document, and a
// bound, is io.EOF; stop is set by a bound. Another error is a fault of the document.
func (x *xmlReader) next() (xml.Token, error) {
	if x.n++; x.n > maxXMLTokens {
		return nil, x.hit(stopXMLTokens)
	}
	x.bytes.begin()
	tok, err := x.d.Token()
	if err != nil {
		if errors.Is(err, errXMLBound) {
			return nil, x.hit(x.bytes.stop)
		}
		return nil, err
	}
	switch tok := tok.(type) {
	case xml.StartElement:
		x.n += len(tok.Attr)
		declared := 0
		for _, a := range tok.Attr {
			if a.Name.Space == "xmlns" || a.Name.Space == "" && a.Name.Local == "xmlns" {
				declared++
			}
		}
		x.open, x.names = append(x.open, declared), x.names+declared
		switch {
		case len(tok.Attr) > maxAttributes:
			return nil, x.hit(stopXMLAttrs)
		case x.names > maxNamespaces || len(tok.Name.Local)+len(tok.Name.Space) > maxXMLName:
			return nil, x.hit(stopXMLNames)
		case len(x.open) > maxXMLDepth:
			return nil, x.hit(stopXMLDepth)
		}
	case xml.EndElement:
		if n := len(x.open); n > 0 {
			x.names -= x.open[n-1]
			x.open = x.open[:n-1]
		}
	}
	return tok, nil
}

// hit notes a bound.
func (x *xmlReader) hit(bound string) error {
	x.stop = bound
	return io.EOF
}

// raw is the bytes of the token that was read last, valid until the next one.
func (x *xmlReader) raw() []byte { return x.bytes.token() }

// xmlBytes gives a decoder its bytes and counts those of the present token: a decoder
// puts a whole tag or text together before it says anything of it.
type xmlBytes struct {
	from *bufio.Reader
	kind xmlKind
	held bool   // the < behind a text was read, and begins the next token
	last byte   // that was read
	kept []byte // of the token, as far as keep
	keep int
	n    int // bytes of the token
	stop string
}

type xmlKind uint8

const (
	xmlBegin xmlKind = iota // nothing of the token was read
	xmlOpen                 // a <
	xmlTag
	xmlOther // text, or an instruction, a comment, CDATA
)

// begin begins a token.
func (b *xmlBytes) begin() {
	b.held = b.last == '<'
	b.kind, b.n, b.kept = xmlBegin, 0, b.kept[:0]
	if b.held {
		b.kind, b.n = xmlOpen, 1
		if b.keep > 0 {
			b.kept = append(b.kept, '<')
		}
	}
}

// token is what was kept of the token, without the < of the next.
func (b *xmlBytes) token() []byte {
	if b.last == '<' && len(b.kept) == b.n && b.n > 0 {
		return b.kept[:b.n-1]
	}
	return b.kept
}

func (b *xmlBytes) ReadByte() (byte, error) {
	c, err := b.from.ReadByte()
	if err != nil {
		return 0, err
	}
	b.last = c
	b.n++
	if len(b.kept) < b.keep {
		b.kept = append(b.kept, c)
	}
	switch b.kind {
	case xmlTag:
		if b.n > maxXMLTag {
			b.stop = stopXMLTag
			return 0, errXMLBound
		}
	case xmlOther:
		if b.n > maxXMLText {
			b.stop = stopXMLText
			return 0, errXMLBound
		}
	case xmlOpen:
		if b.kind = xmlTag; c == '!' || c == '?' {
			b.kind = xmlOther
		}
	case xmlBegin:
		if b.kind = xmlOther; c == '<' {
			b.kind = xmlOpen
		}
	}
	return c, nil
}

// Read is for the decoder of a character set, which reads all that follows.
func (b *xmlBytes) Read(p []byte) (int, error) { return b.from.Read(p) }

// printable leaves out the control characters that XML does not allow, and that
// feeds have nevertheless.
type printable struct{ from io.Reader }

func (r printable) Read(p []byte) (int, error) {
	for {
		n, err := r.from.Read(p)
		kept := p[:0]
		for _, c := range p[:n] {
			if c >= ' ' || c == '\t' || c == '\n' || c == '\r' {
				kept = append(kept, c)
			}
		}
		if len(kept) > 0 || err != nil {
			return len(kept), err
		}
	}
}
