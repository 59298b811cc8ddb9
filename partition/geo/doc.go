// Package geo finds the place on earth that a text names. The text is the free text in the location
// field of a profile. The result is a place with a confidence and other possible meanings, or
// unknown.
//
// The names come from a gazetteer (package atlas, GeoNames) and from hand.tsv. hand.tsv has what no
// gazetteer has: nicknames, short forms, regions and parts of towns, above all of Portugal. Both,
// and the rules here, are part of Digest, which is part of the Charter. Peers with another Digest
// would put people into other slices.
//
// People decorate, shorten, mistype and joke. Text that only looks different is normalised (small
// capitals, circled letters, emphasis). Short forms of Portuguese names are found when they stand
// alone. Words like "em" and "natural de", arrows and flags say which of several places counts. A
// place in a story is no place. The cost of a longer text is that of its first MaxText bytes.
//
// The tables are embedded in the form in which they are read (package atlas), so Open takes
// milliseconds. A change in results without a change of a table must raise Version, which is part
// of the Digest for that reason.
//
// A Judge weighs what is known of a site, an instance or an account. These facts are its domain,
// what it declares, its language, names in its text, and which units link to it. It says which geo
// slice the unit belongs to, with every weight shown, or that it cannot decide. A placed unit stays
// until another place is clearly better.
//
// The package is pure and works offline. It does not judge whether an account belongs to a
// community.
package geo
