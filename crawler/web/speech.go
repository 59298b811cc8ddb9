package web

import (
	"strings"

	"golang.org/x/net/html/atom"
)

// Which parts of a page's text are code and links: they say little of its language and of the
// times it speaks of.
const (
	maxMarked = 2 * maxDated // bytes of a text whose parts are told apart
	maxParts  = 4 << 10      // parts of a kind; what follows the last is not looked at
)

// part is bytes of a text.
type part struct{ from, to int }

// parts are those of one kind, in order and apart.
type parts struct {
	list []part
	from int  // where the open one begins
	open bool // there is one
	full bool
}

// begin opens a part at a byte of the text.
func (p *parts) begin(at int) {
	if !p.open {
		p.open, p.from = true, at
	}
}

// end closes the open part.
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

// known is how many bytes of text are told apart.
func (p *parts) known(text string) int {
	if p.full {
		return p.list[len(p.list)-1].to
	}
	return min(len(text), maxMarked)
}

// codeTag follows the elements that hold code. Those inside of lines end with their line, and
// those of lines at the next heading: pages forget to close them.
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

// gap stands in the place of what was cut out of a text: the words around it are not neighbours.
const gap = " … "

// less is text less the parts in cuts, at most most bytes and what is known of each.
func less(text string, most int, cuts ...*parts) string {
	for _, c := range cuts {
		text = text[:min(len(text), c.known(text))]
	}
	var out strings.Builder
	out.Grow(min(len(text), most))
	at := 0
	var next [2]int // of the lists of cuts
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

// only is the parts in p of text, at most most bytes.
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

// speech is what of the page tells its language.
func (r *reader) speech(p *page) speech {
	s := speech{prose: spread(less(p.text, maxDated, &r.codes, &r.anchors)), links: p.title +
		"\n" + only(p.text, langSample, &r.anchors)}
	if len(r.codes.list) > 0 {
		s.rest = p.text
	}
	return s
}

// spread is a sample of text from all over it, of at most langSample bytes: manuals are often
// translated in part, or begin with what all pages begin with.
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
			rest = rest[1+strings.IndexByte(head(rest, langSample/places), '\n'):] // from the beginning of a line
		}
		out.WriteString(strings.ToValidUTF8(head(rest, langSample/places), "")) //nolint:errcheck // never fails
		out.WriteByte('\n')                                                     //nolint:errcheck // never fails
	}
	return out.String()
}

// spoken is the text that may speak of times: without code, unless that is nearly all of the text and
// reads like prose, as the manual pages do that are code throughout.
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

// prosaic says whether text reads like prose rather than like code.
func prosaic(text string) bool {
	const share = 2
	var e evidence
	e.take(text)
	return e.words > share*e.dropped
}
