// Package blueskytest is a simulated AT Protocol network with known truth: an
// AppView, a PDS, a directory of DIDs and a Jetstream, to read in tests and benches. Its people
// are those of crawler/crawltest/storytest.
//
// It answers as the real ones do: what is not there is a 400, batches leave it out; author feeds and lists have
// cursors, repositories are listed by key from either end; a post that was changed is shown by the
// AppView as it was first, and by the PDS as it is; reposts are records of their own. What the AppView
// shows may come later than the records (Lies.Late). Every way in which real servers
// differ is a switch in Lies. Truth says what a reader should know; Report what the servers saw.
//
// All hosts are one Handler: requests to a host whose name begins with "pds" count against the limits,
// those to others do not, as AppViews tell of none.
package blueskytest
