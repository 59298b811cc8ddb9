package web

import (
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

func (p *prose) add(text string) {
	for len(text) > 0 && !p.full {
		word := strings.IndexFunc(text, isText)
		if word != 0 && p.Len() > 0 && p.pending == 0 {
			p.pending = ' '
		}
		if word < 0 {
			return
		}
		text = text[word:]
		end := strings.IndexFunc(text, func(r rune) bool { return !isText(r) })
		if end < 0 {
			end = len(text)
		}
		p.word(text[:end])
		text = text[end:]
	}
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
