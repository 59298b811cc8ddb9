// Package rivals runs crawlers against one synthetic web on the same machine, one after the
// other. It measures them by what the web's server and the operating system saw, never by the
// crawlers' own reports.
//
// The web is a separate process (echo-bench world) that shares the processor cores with the
// crawler; this is the same for all crawlers. A crawler that is not installed is reported as
// skipped. Crawlers are stopped when their time is over. The web is larger than what any of
// them can fetch.
package rivals
