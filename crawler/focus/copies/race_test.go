//go:build race

package copies

// racing: the race detector makes brute force ten times slower.
const racing = true
