//go:build !race

package periodtest

const racing = false
