package web

import (
	"slices"
	"strings"

	"golang.org/x/net/html/atom"
)

// Limits for the places that a page declares: its geo metadata and the text of its address
// elements. The gazetteer decides what they mean.
const (
	maxDeclared     = 8   // declared texts of one page
	maxDeclaredText = 200 // bytes of one declared text
)

// declares keeps the content of a meta element that names a place.
func (r *reader) declares(name, content string) {
	switch name {
	case "geo.position", "icbm":
		r.declare(strings.ReplaceAll(content, ";", ","))
	case "geo.placename", "og:locality", "business:contact_data:locality", "og:country-name",
		"business:contact_data:country_name":
		r.declare(content)
	}
}

// declare adds one declared text, with single spaces, unless it is too long or already there.
func (r *reader) declare(text string) {
	const most = 16 << 10 // bytes, with the spaces in it
	if len(r.declared) >= maxDeclared || len(text) > most {
		return
	}
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "\uFFFD")
	if text != "" && len(text) <= maxDeclaredText && !slices.Contains(r.declared, text) {
		r.declared = append(r.declared, text)
	}
}

// address handles address elements. They hold the contact of the page. They are mostly in its
// footer, whose text is not text of the page.
func (r *reader) address(a atom.Atom, opens bool) {
	if a != atom.Address {
		return
	}
	if r.inAddress {
		r.declare(r.contact.text())
	}
	r.inAddress, r.contact = opens, prose{max: maxDeclaredText + 1}
}
