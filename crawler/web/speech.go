package web

import (
	"strings"

	"golang.org/x/net/html/atom"
)

// Limits for marking which parts of a page's text are code and links. Those parts show little about
// its language and the times that it mentions.
const (
	maxMarked = 2 * maxDated // bytes of a text in which parts are marked
	maxParts  = 4 << 10      // parts of one kind; text after the last one is not used
)

// part is a range of bytes of a text.
type part struct{ from, to int }

// parts are the parts of one kind, in order and without overlap.
type parts struct {
	list []part
	from int  // start of the open part
	open bool // there is an open part
	full bool
}

// begin opens a part at byte at of the text, unless one is open.
func (p *parts) begin(at int) {
	if !p.open {
		p.open, p.from = true, at
	}
}

// end closes the open part at byte at.
func (p *parts) end(at int) {
	if !p.open {
		return
	}
	p.open = false
	if at = min(at, maxMarked); p.from >= at {
		return
	}
	if p.full = len(p.list) >= maxParts; !p.full {
		p.list = append(p.list, part{p.from, at})
	}
}

// known returns the number of bytes of text in which parts are marked.
func (p *parts) known(text string) int {
	if p.full {
		return p.list[len(p.list)-1].to
	}
	return min(len(text), maxMarked)
}

// codeTag handles the elements that hold code. An inline one ends at the end of its line at the
// latest, a block at the next heading. Pages often forget to close them.
func (r *reader) codeTag(a atom.Atom, opens bool) {
	const block, inline = 0, 1
	step := -1
	if opens {
		step = 1
	}
	switch a {
	case atom.Pre, atom.Listing, atom.Xmp, atom.Plaintext:
		r.code[block] = max(r.code[block]+step, 0)
	case atom.Code, atom.Samp, atom.Kbd, atom.Tt, atom.Var:
		r.code[inline] = max(r.code[inline]+step, 0)
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		r.code = [2]int{}
	default:
		if r.code[inline] == 0 || a == atom.Br || !breaks(a) {
			return
		}
		r.code[inline] = 0
	}
	if r.code[block]+r.code[inline] > 0 {
		r.codes.begin(r.main.Len())
	} else {
		r.codes.end(r.main.Len())
	}
}

// gap replaces what was cut out of a text, because the words around it are not neighbours.
const gap = " … "

// less returns text without the parts in cuts: at most most bytes, and only as far as the parts of
// each of cuts are known.
func less(text string, most int, cuts ...*parts) string {
	for _, c := range cuts {
		text = text[:min(len(text), c.known(text))]
	}
	var out strings.Builder
	out.Grow(min(len(text), most))
	at := 0
	var next [2]int // index in the list of each of cuts
	for at < len(text) && out.Len() < most {
		end, after := len(text), len(text)
		for i, c := range cuts {
			for next[i] < len(c.list) && c.list[next[i]].to <= at {
				next[i]++
			}
			if next[i] < len(c.list) && c.list[next[i]].from < end {
				end, after = max(c.list[next[i]].from, at), c.list[next[i]].to
			}
		}
		out.WriteString(text[at:end]) //nolint:errcheck // never fails
		if at = after; at < len(text) {
			out.WriteString(gap) //nolint:errcheck // never fails
		}
	}
	return head(out.String(), most)
}

// only returns the parts of text in p, at most most bytes.
func only(text string, most int, p *parts) string {
	var out strings.Builder
	for _, l := range p.list {
		if out.Len() >= most || l.from >= len(text) {
			break
		}
		out.WriteString(text[l.from:min(l.to, len(text))]) //nolint:errcheck // never fails
		out.WriteByte('\n')                                //nolint:errcheck // never fails
	}
	return head(out.String(), most)
}

// speech returns the parts of the page that show its language.
func (r *reader) speech(p *page) speech {
	s := speech{prose: spread(less(p.text, maxDated, &r.codes, &r.anchors)), links: p.title +
		"\n" + only(p.text, langSample, &r.anchors)}
	if len(r.codes.list) > 0 {
		s.rest = p.text
	}
	return s
}

// spread returns a sample of at most langSample bytes from several places of text. Manuals are
// often translated only in part, or begin with text that all pages share.
func spread(text string) string {
	const places = 4
	if len(text) <= langSample {
		return text
	}
	var out strings.Builder
	out.Grow(langSample + places)
	for i := range places {
		rest := text[i*len(text)/places:]
		if i > 0 {
			// Start at the beginning of a line.
			rest = rest[1+strings.IndexByte(head(rest, langSample/places), '\n'):]
		}
		out.WriteString(strings.ToValidUTF8(head(rest, langSample/places), "")) //nolint:errcheck // never fails
		out.WriteByte('\n')                                                     //nolint:errcheck // never fails
	}
	return out.String()
}

// spoken returns the text that may mention times: the text without code. If nearly all of it is
// code and reads like prose, it returns the whole text. Some manual pages are like that.
func (r *reader) spoken(p *page) string {
	if len(r.codes.list) == 0 {
		return p.text
	}
	said, all := less(p.text, maxDated, &r.codes), head(p.text, maxDated)
	const nearly = 4
	if len(said) < len(all)/nearly && prosaic(all) {
		return all
	}
	return said
}

// prosaic reports whether text reads like prose rather than like code.
func prosaic(text string) bool {
	const share = 2
	var e evidence
	e.take(text)
	return e.words > share*e.dropped
}
