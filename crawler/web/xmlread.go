package web

import (
	"bufio"
	"encoding/xml"
	"errors"
	"io"

	"golang.org/x/net/html/charset"
)

// xmlReader reads the tokens of an XML document within limits. xmlBytes checks the limits of one
// token while it is read. xmlReader checks the limits of the open elements and of the whole
// document at each token.
type xmlReader struct {
	d     *xml.Decoder
	bytes *xmlBytes
	n     int   // tokens and attributes so far
	open  []int // number of namespaces that each open element declares
	names int   // the sum of open
	stop  string
}

// newXMLReader returns an xmlReader that is not strict and decodes the declared character set.
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

// errXMLBound is the error that the decoder gets at a limit. xmlReader.stop names the limit.
var errXMLBound = errors.New("web: xml: a bound was hit")

// next returns the next token, which is valid until the following call. It returns io.EOF at the
// end of the document and at a limit; at a limit, stop is set. Any other error is a fault of the
// document.
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

// hit stores the name of a limit and returns io.EOF.
func (x *xmlReader) hit(bound string) error {
	x.stop = bound
	return io.EOF
}

// raw returns the bytes of the last token, valid until the next call of next.
func (x *xmlReader) raw() []byte { return x.bytes.token() }

// xmlBytes feeds a decoder and counts the bytes of the current token. The check is needed because a
// decoder builds a whole tag or text before it returns it.
type xmlBytes struct {
	from *bufio.Reader
	kind xmlKind
	held bool   // the < after a text was read; it begins the next token
	last byte   // the last byte that was read
	kept []byte // the first keep bytes of the token
	keep int
	n    int // bytes of the token
	stop string
}

// xmlKind is what xmlBytes knows about the current token.
type xmlKind uint8

const (
	xmlBegin xmlKind = iota // nothing of the token was read yet
	xmlOpen                 // a < was read
	xmlTag
	xmlOther // text, a processing instruction, a comment or CDATA
)

// begin starts a new token.
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

// token returns the kept bytes of the token, without the < of the next one.
func (b *xmlBytes) token() []byte {
	if b.last == '<' && len(b.kept) == b.n && b.n > 0 {
		return b.kept[:b.n-1]
	}
	return b.kept
}

// ReadByte is called by the decoder. It returns errXMLBound when the token exceeds its limit.
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

// Read is for the decoder of a character set, which reads everything that follows.
func (b *xmlBytes) Read(p []byte) (int, error) { return b.from.Read(p) }

// printable removes the control characters that XML does not allow. Feeds contain them
// nevertheless.
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
