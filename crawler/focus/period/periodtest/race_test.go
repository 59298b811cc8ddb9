//go:build race

package periodtest

// racing: the race detector makes crawling ten times slower.
const racing = true
