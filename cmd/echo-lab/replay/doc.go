// Package replay has the real crawler crawl a loopback web that replays a history
// of changes, many times faster than it was, and compares how fresh its copies are
// with what the simulator (cmd/echo-lab/contest) says of the same world at the
// same budget. The truth is the web's side: which edition it gave to whom, and when.
package replay
