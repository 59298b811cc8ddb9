// Package replay lets the real crawler crawl a loopback web that replays a history of changes,
// many times faster than in reality. It compares the freshness of the crawler's copies with
// that of the simulator (cmd/echo-lab/contest), for the same world at the same budget. The
// truth comes from the web's side: which edition it sent to which client, and when.
package replay
