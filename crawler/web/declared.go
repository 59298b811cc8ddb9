package web

import (
	"slices"
	"strings"

	"golang.org/x/net/html/atom"
)

// Where a page says it is: its geo metadata and what stands in its address
// elements, as text. What that means is for others to judge.
const (
	maxDeclared     = 8   // texts of one page
	maxDeclaredText = 200 // bytes of one
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

func (r *reader) declare(text string) {
	const most = 16 << 10 // bytes with the blanks in it
	if len(r.declared) >= maxDeclared || len(text) > most {
		return
	}
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "\uFFFD")
	if text != "" && len(text) <= maxDeclaredText && !slices.Contains(r.declared, text) {
		r.declared = append(r.declared, text)
	}
}

// address follows the address elements; they hold the contact of the page, and
// stand mostly in its footer, whose text is no text of the page.
func (r *reader) address(a atom.Atom, opens bool) {
	if a != atom.Address {
		return
	}
	if r.inAddress {
		r.declare(r.contact.text())
	}
	r.inAddress, r.contact = opens, prose{max: maxDeclaredText + 1}
}
