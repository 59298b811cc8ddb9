// Package atlas holds the table of places that partition/geo resolves names
// with: its format, its reader and writer, and the table itself.
//
// The table lies in the program as it is read, so that opening it takes no time
// and no memory: a peer that restarts has it at once, and the pages of it that
// nobody asks for stay on the disk.
//
// The table is derived from GeoNames (https://www.geonames.org), licensed under
// CC BY 4.0; ATTRIBUTION.md beside it must stay with it. gazgen makes it.
//
// It does not interpret text; it only says which places bear a name.
package atlas
