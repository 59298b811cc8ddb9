// Package periodtest is a synthetic Portuguese web with known truth, on which
// orders of crawling by time are compared.
//
// A page is about a year. Its paragraphs tell facts, most of that year, and carry
// links, most to pages about a near year: that content on both ends of a link is
// near in time is what the temporal crawler was built on (Pereira 2013, 6.12). There
// are pages without any date, navigation to popular pages, and traps: streets
// named by dates, numbers that are no years, decades that reach out of the scope.
// What a page talks about is known from how it was made, not from the tagger: so
// the precision measured here is not the tagger's opinion of itself.
package periodtest
