// Package geo says where on earth a text points to: the free text that people
// put into the location field of a profile becomes a place, with a confidence
// and what else it may mean, or an honest unknown.
//
// The names come from a gazetteer (package atlas, GeoNames) and from hand.tsv,
// which has what no gazetteer has: nicknames, short forms, regions and parts of
// towns of Portugal first. Both, and the rules here, are part of Digest, which
// goes into the Charter: peers that differ would put people into other slices.
//
// People decorate, shorten, mistype and joke. What only looks different is undone
// (small capitals, circled letters, emphasis), short forms of Portuguese names are
// found when they stand alone, words like "em" and "natural de", arrows and flags
// say which of several places counts, and what is set in a story is no place. A
// text of any length costs what its first MaxText bytes cost.
//
// The tables lie in the program as they are read (package atlas), so Open takes
// milliseconds. Who changes what a text resolves to without touching a table
// raises Version: it is in the Digest for that.
//
// A Judge weighs what is known of a site, an instance or an account - its domain,
// what it declares, its language, names in its text, who links to it - and says
// which geo slice it belongs to, with every weight shown, or that it cannot tell.
// What is placed stays until another place is clearly better.
//
// It is pure and works offline. It does not judge who belongs to a community.
package geo
