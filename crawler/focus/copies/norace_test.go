//go:build !race

package copies

const racing = false
