// Package temporal redoes the experiment of Pereira, "Descarga Temporal de Páginas Web" (Universidade do Minho,
// 2013), chapter 8: how many of the pages that a crawl fetches speak of a wanted time. [Measure] has one web
// crawled in several orders, among them the paper's and that of a crawl of echo-node.
//
// # The web
//
// A [World] is a synthetic Portuguese web with known truth. A page is about a year. Its paragraphs tell facts, most
// of that year, and carry links, most to pages about a near year: that content on both ends of a link is near in
// time is what the paper was built on (table 6.12). There are pages without any date, navigation to popular pages,
// and traps: streets named by dates, numbers that are no years, decades that reach out of the scope. What a page
// talks about is known from how it was made, not from the tagger: so the precision measured here is not the tagger's
// opinion of itself, as the paper's is.
//
// # The tagger
//
// [Judge] holds package period against phrases whose meaning was written down by hand. [HAREM] and [TIMEX3] mark
// what it finds in a text as scorers of other people read it; [FindDocDate] says when such a text was written.
package temporal
