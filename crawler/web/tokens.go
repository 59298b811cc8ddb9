package web

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"golang.org/x/net/html"
)

// tokens reads the tokens of an HTML document and holds little more than maxToken bytes
// of it. A longer text comes in parts. A longer comment is left out, and so are the
// attributes of a longer tag, of which stop speaks.
//
// The tokenizer below remembers the names of the attributes of a tag and clears that
// memory at each tag; it keeps the size that the largest tag had. So after a tag with many
// attributes there is a new tokenizer: else one such tag would make all that follow slow.
type tokens struct {
	from  source
	z     *html.Tokenizer
	n     int
	raw   string // the element that the next text is in, where that holds no tags: script ...
	many  bool   // the tag that was read last has many attributes
	part  bool   // the text that was read last is a part of a longer one
	more  bool   // and more of it comes
	text  []byte // of it
	tags  int    // bytes of tags that begin elements
	crowd int    // bytes of those with many attributes
	stop  string // the bound that was hit
	ended error  // io.EOF, or what was wrong with the reading
}

func newTokens(r io.Reader) *tokens {
	t := &tokens{from: source{rest: r}}
	t.again("")
	return t
}

// again starts a tokenizer where the last one stopped, inside the element raw.
func (t *tokens) again(raw string) {
	if t.z != nil {
		t.from.back(t.z.Buffered())
	}
	t.z = html.NewTokenizer(&t.from)
	t.z.SetMaxBuf(maxToken)
	t.raw, t.many = raw, false
	if raw != "" { // a tokenizer of a fragment would not look for the end tag
		t.from.back([]byte("<" + raw + ">"))
		t.z.Next()
	}
}

// next is the next text or tag; ErrorToken is the end.
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

// crowded counts the bytes of tags with many attributes; true is too many.
func (t *tokens) crowded(n int) bool {
	if t.crowd += n; t.crowd <= maxCrowded {
		return false
	}
	t.stop, t.ended = stopAttributes, io.EOF
	return true
}

// cut says whether the token that was read last is cut off: a whole one is shorter.
func (t *tokens) cut() bool { return len(t.z.Raw()) >= maxToken }

// takeText sets text. Of a part of a text nothing is taken that would read otherwise
// beside what follows: half a character, an entity, an end tag.
func (t *tokens) takeText() {
	t.part = t.more
	if t.more = t.cut(); !t.more {
		t.text, t.raw = t.z.Text(), ""
		return
	}
	const last = 64 // bytes; entities and the end tags of raw texts are shorter
	raw := t.z.Raw()
	end := wholeRunes(raw)
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

// skipTag passes over the attributes of a tag that is longer than maxToken, and says
// whether they are many.
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
	if end := bytes.IndexAny(head[2:longName], " \n\r\t\f/"); end >= 0 { // else it is no element of HTML
		t.from.back(append(head[:2+end:2+end], '>'))
	}
	t.again("")
	return manyAttributes(head)
}

// skipComment passes over a comment that is longer than maxToken.
func (t *tokens) skipComment() {
	head := t.z.Raw()
	dashes := bytes.HasPrefix(head, []byte("<!--"))
	t.from.back(t.z.Buffered())
	t.from.back(head[len(head)-3:])
	t.z = nil
	seen := 0 // dashes in a row
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

// inTag follows the bytes of a tag as the HTML standard does.
type inTag struct {
	value bool // behind a =
	quote byte // the one that the value is in, ' ' for a value without
}

// ends says whether the tag ends at b.
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

// rawElement is the name in tag, when it begins an element that holds text alone.
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

// manyAttributes says whether a tag may have so many that the tokenizer had better
// forget them.
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

// source reads what was given back, the last first, and then rest.
type source struct {
	front [][]byte
	rest  io.Reader
}

// back gives b back, which is not written to afterwards.
func (s *source) back(b []byte) {
	if len(b) > 0 {
		s.front = append(s.front, b)
	}
}

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

// skip reads up to and with the byte at which ends says so, or to the end.
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
			return // the next Read says so again
		}
	}
}
