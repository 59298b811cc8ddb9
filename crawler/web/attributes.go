package web

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// hasAttributes says whether an element of that name is read with its attributes.
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
	atRole // of aside elements alone
	atClass
	attributeCount
)

// attributes are those of one tag, "" for one that it does not have.
type attributes [attributeCount]string

// read takes them off the current tag, of such an element, whose names the tokenizer has once each. It is false when
// the tag had more than maxAttributes.
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

// isNote says that an aside element is of the text and not of what stands around it: a footnote or a remark, as
// generators of documentation write them. The roles are those of WAI-ARIA and of its module for digital publishing.
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
