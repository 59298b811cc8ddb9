// Package blueskytest simulates an AT Protocol network, for tests and benchmarks. The truth about
// it is known. The network has an AppView, a PDS, a directory of DIDs and a Jetstream. Its people
// come from crawler/crawltest/storytest.
//
// It answers as the real servers do. A request for something unknown gets a 400; a batch leaves it
// out. Author feeds and lists have cursors. Repositories are listed by key from either end. For an
// edited post, the AppView shows the first version and the PDS the current one. Reposts are
// separate records. The AppView may show a record later than the PDS (Lies.Late). Each way in which
// real servers differ is a switch in Lies. Truth returns what a reader should know; Report returns
// what the servers measured.
//
// One Handler serves all hosts. Only requests to the PDS count against the limits: its host is the
// one in Options.PDS, or its name begins with "pds". An AppView has no limit headers.
package blueskytest
