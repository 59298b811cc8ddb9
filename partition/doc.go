// Package partition says WHERE things belong: what a Key is, which Site it is
// owed politeness at, which Slice it falls into, and which Members keep that
// slice. It is the vocabulary of every other package.
//
// It is pure: no clock, no disk, no network, no logging, no package state that
// changes. Given the same Charter and the same View, every peer on every
// architecture computes the same answer bit for bit, so scores are integers
// and never floating point.
//
// The 64-bit space. A Slice is a prefix of one 64-bit space, written as the
// prefix's bits, a single 1 bit, then zeros (the form S2 cell ids have). S2
// uses the three top bits for the six faces of the cube, 0 to 5; faces 6 and 7
// (the prefix 11) are free there and hold the hash slices. So one uint64 names
// a slice of either kind, and the store can order both by it.
//
// It does not decide what is crawled, when, or who is alive.
package partition
