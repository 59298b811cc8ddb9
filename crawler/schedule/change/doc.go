// Package change decides whether an item changed since the last visit. It uses the cheapest proof
// first. A 304 or an equal entity tag needs no body. Otherwise the text without markup is digested
// and compared. Parts that change by themselves are masked first (clocks, counters, advertising).
//
// Hints without a visit (a sitemap's lastmod, a feed's entry, a Last-Modified) are trusted as far
// as they were right before ([Trust]).
//
// It is pure and safe for concurrent use.
package change
