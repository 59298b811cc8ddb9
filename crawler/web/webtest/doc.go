// Package webtest makes bad pages: such as a server would send that wants to harm the
// peer who reads them, and such as are merely broken.
//
// Shapes makes pages of any size that are one thing over and over, each the worst that
// is known of one part of a reader. Generator makes small ones at random: from a grammar of
// pieces, and out of given ones by cutting, doubling and mixing. The same seed gives the
// same pages. What they are to be held against is for the tests of package web.
package webtest
