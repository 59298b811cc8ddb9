package web

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// hasAttributes reports whether the attributes of element a are read.
func hasAttributes(a atom.Atom) bool {
	switch a {
	case atom.Html, atom.Body, atom.Base, atom.Meta, atom.Link, atom.Script,
		atom.A, atom.Area, atom.Img, atom.Iframe, atom.Frame, atom.Aside:
		return true
	}
	return false
}

// The attributes that are read.
const (
	atLang = iota
	atXMLLang
	atHref
	atRel
	atHreflang
	atType
	atSrc
	atAlt
	atName
	atContent
	atProperty
	atItemprop
	atHTTPEquiv
	atRole // read only for aside elements
	atClass
	attributeCount
)

// attributes holds the attribute values of one tag, "" for each one that the tag does not have.
type attributes [attributeCount]string

// read sets at to the attributes of the current tag, which is of element of. The tokenizer returns
// each name once. read returns false when the tag has more than maxAttributes.
func (at *attributes) read(z *html.Tokenizer, of atom.Atom) bool {
	*at = attributes{}
	for range maxAttributes {
		k, v, more := z.TagAttr()
		if i := attributeOf(k); i >= 0 && (i < atRole || of == atom.Aside) {
			at[i] = string(v)
		}
		if !more {
			return true
		}
	}
	return false
}

// attributeOf returns the index of an attribute name, or -1 if the attribute is not read.
func attributeOf(name []byte) int {
	switch string(name) {
	case "lang":
		return atLang
	case "xml:lang":
		return atXMLLang
	case "href":
		return atHref
	case "rel":
		return atRel
	case "hreflang":
		return atHreflang
	case "type":
		return atType
	case "src":
		return atSrc
	case "alt":
		return atAlt
	case "name":
		return atName
	case "content":
		return atContent
	case "property":
		return atProperty
	case "itemprop":
		return atItemprop
	case "http-equiv":
		return atHTTPEquiv
	case "role":
		return atRole
	case "class":
		return atClass
	}
	return -1
}

// isNote reports whether an aside element belongs to the text, like a footnote or a remark, and is
// not beside it. It knows the classes that documentation generators write. The roles are those of
// WAI-ARIA and of its module for digital publishing.
func (at *attributes) isNote() bool {
	switch role := at[atRole]; role {
	case "note", "doc-footnote", "doc-endnote", "doc-endnotes", "doc-tip", "doc-notice", "doc-example":
		return true
	}
	apart := func(c rune) bool { return c == ' ' || c == '-' || c == '_' }
	for class := range strings.FieldsFuncSeq(at[atClass], apart) {
		switch strings.ToLower(class) {
		case "note", "notes", "footnote", "footnotes", "endnote", "endnotes",
			"admonition", "tip", "warning", "caution", "important", "danger":
			return true
		}
	}
	return false
}
