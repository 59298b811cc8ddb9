// Package webtest makes bad pages: pages of a server that wants to harm the peer that reads them,
// and pages that are only broken.
//
// OfShape makes a page of any size that repeats one thing. Each shape is the worst case known for
// one part of a parser. Generator makes small random pages: from a grammar of pieces, and from
// given pages by cutting, repeating and mixing. The same seed gives the same pages. The tests of
// package web define what a page must not do.
package webtest
