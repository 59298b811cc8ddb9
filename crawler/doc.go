// Package crawler is the loop from a due Key to a committed record and new
// links. It knows nothing of peers.
package crawler
