// Package rivals runs crawlers against one synthetic web on the same machine,
// one after the other, and measures them by what the web's server and the
// operating system saw: never by what a crawler says of itself.
//
// The web is a process of its own (echo-bench world) that shares the cores with
// the crawler, as do all crawlers. A crawler that is not installed is named as
// skipped. Crawlers are stopped when their time is over; the web is larger than
// any of them gets to see.
package rivals
