package web

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"golang.org/x/net/html"

	"github.com/echo-node/echo-node/crawler/web/utf8text"
)

// tokens reads the tokens of an HTML document and buffers little more than maxToken bytes of it. A
// longer text comes in parts. A longer comment is left out. The attributes of a longer tag are left
// out too; then stop is set.
//
// The html.Tokenizer remembers the attribute names of a tag and clears that memory at each tag. The
// memory keeps the size that the largest tag needed. So after a tag with many attributes, tokens
// starts a new html.Tokenizer. Otherwise one such tag would make all later tags slow.
type tokens struct {
	from  source
	z     *html.Tokenizer
	n     int
	raw   string // the element of the next text if it holds no tags: script ...
	many  bool   // the last tag has many attributes
	part  bool   // the last text is a part of a longer one
	more  bool   // more parts of the last text follow
	text  []byte // the last text
	tags  int    // bytes of all start tags so far
	crowd int    // bytes of the start tags with many attributes
	stop  string // the limit that was hit
	ended error  // io.EOF, or the error of the reader
}

func newTokens(r io.Reader) *tokens {
	t := &tokens{from: source{rest: r}}
	t.again("")
	return t
}

// again starts a new html.Tokenizer where the last one stopped. raw is the element there, or "".
func (t *tokens) again(raw string) {
	if t.z != nil {
		t.from.back(t.z.Buffered())
	}
	t.z = html.NewTokenizer(&t.from)
	t.z.SetMaxBuf(maxToken)
	t.raw, t.many = raw, false
	if raw != "" { // html.NewTokenizerFragment would not look for the end tag
		t.from.back([]byte("<" + raw + ">"))
		t.z.Next()
	}
}

// next returns the type of the next text or tag, or ErrorToken at the end.
func (t *tokens) next() html.TokenType {
	for {
		if t.many {
			t.again(t.raw)
		}
		if t.n++; t.n > maxTokens {
			t.stop, t.ended = stopTokens, io.EOF
			return html.ErrorToken
		}
		switch kind := t.z.Next(); kind {
		case html.TextToken:
			t.takeText()
			return kind
		case html.StartTagToken, html.SelfClosingTagToken:
			tag := t.z.Raw()
			if t.tags += len(tag); t.tags > maxTags {
				t.stop, t.ended = stopTags, io.EOF
				return html.ErrorToken
			}
			t.raw, t.many = rawElement(tag), manyAttributes(tag)
			if t.many && t.crowded(len(tag)) {
				return html.ErrorToken
			}
			return kind
		case html.EndTagToken:
			t.raw = ""
			return kind
		case html.ErrorToken:
			if t.ended = t.z.Err(); !errors.Is(t.ended, html.ErrBufferExceeded) {
				return kind
			}
			if t.skipTag() && t.crowded(maxToken) {
				return html.ErrorToken
			}
		default: // a comment
			t.raw = ""
			if t.cut() {
				t.skipComment()
			}
		}
	}
}

// crowded adds n to the bytes of tags with many attributes. It reports whether they exceed
// maxCrowded.
func (t *tokens) crowded(n int) bool {
	if t.crowd += n; t.crowd <= maxCrowded {
		return false
	}
	t.stop, t.ended = stopAttributes, io.EOF
	return true
}

// cut reports whether the last token is incomplete. A complete one is shorter than maxToken.
func (t *tokens) cut() bool { return len(t.z.Raw()) >= maxToken }

// takeText sets text. When the text comes in parts, a part ends before anything that would change
// its meaning together with what follows: half a character, an entity or an end tag.
func (t *tokens) takeText() {
	t.part = t.more
	if t.more = t.cut(); !t.more {
		t.text, t.raw = t.z.Text(), ""
		return
	}
	const last = 64 // bytes; entities and the end tags of raw elements are shorter
	raw := t.z.Raw()
	end := utf8text.WholeRunes(raw)
	if at := bytes.LastIndexAny(raw[len(raw)-last:], " \t\r\n\f<&"); at >= 0 {
		end = len(raw) - last + at
	}
	t.part, t.text = true, raw[:end]
	if t.raw == "" || t.raw == "title" || t.raw == "textarea" {
		t.text = []byte(html.UnescapeString(string(t.text)))
	}
	t.from.back(t.z.Buffered())
	t.from.back(raw[end:])
	t.z = nil
	t.again(t.raw)
}

// skipTag skips the attributes of a tag that is longer than maxToken. many reports whether the tag
// has many attributes.
func (t *tokens) skipTag() (many bool) {
	t.stop = stopTag
	head := slices.Clone(t.z.Raw())
	t.from.back(t.z.Buffered())
	t.z = nil
	var at inTag
	for _, b := range head[1:] {
		at.ends(b)
	}
	t.from.skip(at.ends)
	const longName = 64
	if end := bytes.IndexAny(head[2:longName], " \n\r\t\f/"); end >= 0 { // else not HTML
		t.from.back(append(head[:2+end:2+end], '>'))
	}
	t.again("")
	return manyAttributes(head)
}

// skipComment skips a comment that is longer than maxToken.
func (t *tokens) skipComment() {
	head := t.z.Raw()
	dashes := bytes.HasPrefix(head, []byte("<!--"))
	t.from.back(t.z.Buffered())
	t.from.back(head[len(head)-3:])
	t.z = nil
	seen := 0 // number of dashes directly before this byte
	t.from.skip(func(b byte) bool {
		switch {
		case b == '>':
			return seen >= 2 || !dashes
		case b == '-':
			seen++
		case b != '!' || seen < 2:
			seen = 0
		}
		return false
	})
	t.again("")
}

// inTag tracks the position inside a tag, byte by byte, as the HTML standard does.
type inTag struct {
	value bool // after a =
	quote byte // the quote around the value, ' ' for a value without quotes
}

// ends reports whether the tag ends at b.
func (t *inTag) ends(b byte) bool {
	blank := b == ' ' || b == '\n' || b == '\r' || b == '\t' || b == '\f'
	switch {
	case t.quote == '"' || t.quote == '\'':
		if b == t.quote {
			*t = inTag{}
		}
		return false
	case b == '>':
		return true
	case t.quote == ' ' && blank:
		*t = inTag{}
	case t.quote == ' ' || blank:
	case !t.value:
		t.value = b == '='
	case b == '"' || b == '\'':
		t.quote = b
	default:
		t.quote = ' '
	}
	return false
}

// rawElement returns the element name in tag if that element holds only text, otherwise "".
func rawElement(tag []byte) string {
	if len(tag) < 2 || bytes.IndexByte([]byte("inpstx"), tag[1]|0x20) < 0 {
		return ""
	}
	name := tag[1:min(len(tag), 12)]
	if end := bytes.IndexAny(name, " \n\r\t\f/>"); end >= 0 {
		name = name[:end]
	}
	switch name := string(bytes.ToLower(name)); name {
	case "iframe", "noembed", "noframes", "noscript", "plaintext", "script", "style", "textarea", "title", "xmp":
		return name
	}
	return ""
}

// manyAttributes reports whether a tag may have so many attributes that a new html.Tokenizer is
// better.
func manyAttributes(tag []byte) bool {
	const longTag, some = 512, 128
	if len(tag) <= longTag {
		return false
	}
	n := 0
	var at inTag
	for _, b := range tag[1:] {
		if at.ends(b); at.quote == 0 && (b <= ' ' || b == '/') {
			n++
		}
	}
	return n > some
}

// source reads the bytes that were given back, the last ones first, and then rest.
type source struct {
	front [][]byte
	rest  io.Reader
}

// back puts b back to be read again. The caller must not write to b afterwards.
func (s *source) back(b []byte) {
	if len(b) > 0 {
		s.front = append(s.front, b)
	}
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	n := len(s.front)
	if n == 0 {
		return s.rest.Read(p)
	}
	c := copy(p, s.front[n-1])
	if s.front[n-1] = s.front[n-1][c:]; len(s.front[n-1]) == 0 {
		s.front = s.front[:n-1]
	}
	return c, nil
}

// skip reads up to and including the byte for which ends is true, or to the end.
func (s *source) skip(ends func(byte) bool) {
	var buf [4 << 10]byte
	for {
		n, err := s.Read(buf[:])
		for i, b := range buf[:n] {
			if ends(b) {
				s.back(slices.Clone(buf[i+1 : n]))
				return
			}
		}
		if err != nil {
			return // the next Read returns the error again
		}
	}
}
