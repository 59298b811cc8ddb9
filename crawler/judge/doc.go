// Package focus holds the judges of what was fetched, one package each:
//
//	lang     which language a text, or a person over many texts, is in
//	place    in partition/geo: where a free-text location is
//	who      whether an account belongs to the collected community
//	period   which time a page talks about, and which of its links to follow
//	copies   which texts are copies of which
//
// Every judge is pure: no clock, no disk, no network, no package variable that
// changes. It takes what was fetched and answers with its verdict and the
// evidence for it; the crawl decides what to do with that. Each can be used
// alone from the command line: echo-node focus.
//
// This package itself has no code: a crawl imports the judges it wants.
package focus
