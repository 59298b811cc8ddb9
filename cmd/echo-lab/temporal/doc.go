// Package temporal repeats the experiment of Pereira, "Descarga Temporal de Páginas Web"
// (Universidade do Minho, 2013), chapter 8: how many of the pages that a crawl fetches are
// about a wanted time. [Measure] crawls one web in several orders, among them the paper's and
// echo-node's.
//
// # The web
//
// A [World] is a synthetic Portuguese web with known truth. Each page has a main year. Its
// paragraphs state facts, most of them about that year, and have links, most of them to pages
// about a nearby year. The paper is based on this: the content on both ends of a link is near
// in time (table 6.12). There are also pages without any date, navigation to popular pages, and
// traps: streets named after dates, numbers that are no years, and decades that extend beyond
// the scope. The way a page was made says what it is about, not the tagger. So the precision
// measured here is not the tagger's opinion of itself, as the paper's is.
//
// # The tagger
//
// [Judge] compares package period with phrases whose meaning was written down by hand. [HAREM]
// and [TIMEX3] mark the expressions that it finds in a text, in the formats of other people's
// scorers. [FindDocDate] says when such a text was written.
package temporal
