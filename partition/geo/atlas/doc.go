// Package atlas has the table of places that partition/geo uses to resolve names: its format,
// its reader and writer, and the table itself.
//
// The table is embedded in the program in the form in which it is read. So opening it takes no
// time and no memory. A peer that restarts has it at once, and its unused pages stay on disk.
//
// The table is derived from GeoNames (https://www.geonames.org), licensed under CC BY 4.0;
// ATTRIBUTION.md next to it must stay with it. gazgen makes the table.
//
// The package does not interpret text. It only says which places have a name.
package atlas
