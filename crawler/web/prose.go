package web

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/echo-node/echo-node/crawler/web/utf8text"
)

// prose collects at most max bytes of text. A run of spaces becomes one space. newline ends a line,
// and empty lines are left out.
type prose struct {
	strings.Builder
	max     int
	pending byte // ' ' or '\n' to write before the next word, 0 for nothing
	full    bool
}

// text returns the collected text.
func (p *prose) text() string { return strings.TrimSpace(p.String()) }

// newline ends the line, if there is text.
func (p *prose) newline() {
	if p.Len() > 0 {
		p.pending = '\n'
	}
}

// add appends text. Its time is linear in the length of text.
func (p *prose) add(text string) {
	for len(text) > 0 && !p.full {
		word := indexText(text)
		if word != 0 && p.Len() > 0 && p.pending == 0 {
			p.pending = ' '
		}
		if word < 0 {
			return
		}
		text = text[word:]
		room := max(p.max-p.Len()-1, 0)
		near := text[:min(len(text), room+utf8.UTFMax)] // text that does not fit is not scanned
		end := runLen(near, true)
		if end >= room { // text that does not fit is cut after a whole word
			if end = strings.LastIndexByte(text[:min(end, room)], ' '); end <= 0 {
				end = runLen(near, false)
			}
		}
		p.word(text[:end])
		text = text[end:]
	}
}

// indexText returns the index of the first word of s, or -1 when s has none.
func indexText(s string) int {
	for i, r := range s {
		if r > ' ' && r < 0x7F || r > 0x7F && isText(r) {
			return i
		}
	}
	return -1
}

// runLen returns the length of the first word of s. With blanks, it returns the length of all words
// that have one space between them, because they can be copied unchanged.
func runLen(s string, blanks bool) int {
	blank := false // the last rune was a space
	for i, r := range s {
		switch {
		case r > ' ' && r < 0x7F || r >= 0xC0 && r < 0x250 || r > 0x7F && isText(r):
			blank = false
		case blank:
			return i - 1
		case r == ' ' && blanks:
			blank = true
		default:
			return i
		}
	}
	if blank {
		return len(s) - 1
	}
	return len(s)
}

// word writes the pending separator and w. It cuts w at max.
func (p *prose) word(w string) {
	if p.pending != 0 {
		if p.Len()+1 < p.max {
			p.WriteByte(p.pending) //nolint:errcheck // never fails
		}
		p.pending = 0
	}
	if room := p.max - p.Len(); len(w) > room {
		p.full = true
		for room > 0 && !utf8.RuneStart(w[room]) {
			room--
		}
		w = w[:max(room, 0)]
	}
	p.WriteString(w) //nolint:errcheck // never fails
}

// isText reports whether r belongs to a word: it is no space and no control character. A NUL or an
// escape would only cause trouble where the text is shown.
func isText(r rune) bool {
	return !unicode.IsSpace(r) && !unicode.IsControl(r) && r != '\uFEFF' && r != '\u200B'
}

// read appends all of r, a text without markup. It returns the error of reading.
func (p *prose) read(r io.Reader) error {
	held := make([]byte, 0, 16<<10)
	for !p.full {
		n, err := r.Read(held[len(held):cap(held)])
		held = held[:len(held)+n]
		whole := held
		if err == nil {
			whole = held[:utf8text.WholeRunes(held)]
		}
		for i, line := range bytes.Split(whole, []byte("\n")) {
			if i > 0 {
				p.newline()
			}
			p.add(string(line))
		}
		held = held[:copy(held, held[len(whole):])]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
