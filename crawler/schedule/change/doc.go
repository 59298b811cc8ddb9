// Package change answers one question: did this item change since the last
// visit? It takes the cheapest proof first: a 304 or an equal entity tag needs no
// body; else the markup-free text, with what changes by itself masked (clocks,
// counters, advertising), is digested and compared.
//
// Hints that come without a visit (a sitemap's lastmod, a feed's entry, a
// Last-Modified) are believed as far as they proved right before ([Trust]).
//
// It is pure and safe for concurrent use.
package change
