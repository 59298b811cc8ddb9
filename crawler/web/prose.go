package web

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// prose collects text: runs of space become one, lines are ended by newline,
// empty lines are left out. At most max bytes.
type prose struct {
	strings.Builder
	max     int
	pending byte // ' ' or '\n' owed before the next word, 0 = nothing
	full    bool
}

// text is what was collected.
func (p *prose) text() string { return strings.TrimSpace(p.String()) }

func (p *prose) newline() {
	if p.Len() > 0 {
		p.pending = '\n'
	}
}

// add takes up text, in time that grows with its length.
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
		near := text[:min(len(text), room+utf8.UTFMax)] // what does not fit is not looked at
		end := runLen(near, true)
		if end >= room { // what does not fit is cut after whole words
			if end = strings.LastIndexByte(text[:min(end, room)], ' '); end <= 0 {
				end = runLen(near, false)
			}
		}
		p.word(text[:end])
		text = text[end:]
	}
}

// indexText is where the first word of s begins, -1 when it has none.
func indexText(s string) int {
	for i, r := range s {
		if r > ' ' && r < 0x7F || r > 0x7F && isText(r) {
			return i
		}
	}
	return -1
}

// runLen is the length of the word at the beginning of s; with blanks, of all
// the words with one blank between them, which stand as they are.
func runLen(s string, blanks bool) int {
	blank := false // the last one was a blank
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

// isText says whether r belongs to a word: no space, no control character (a
// NUL or an escape would only trouble who shows the text).
func isText(r rune) bool {
	return !unicode.IsSpace(r) && !unicode.IsControl(r) && r != '\uFEFF' && r != '\u200B'
}

// read takes up all of r, which has no markup. The error is one of reading.
func (p *prose) read(r io.Reader) error {
	held := make([]byte, 0, 16<<10)
	for !p.full {
		n, err := r.Read(held[len(held):cap(held)])
		held = held[:len(held)+n]
		whole := held
		if err == nil {
			whole = held[:wholeRunes(held)]
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
