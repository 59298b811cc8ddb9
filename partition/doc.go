// Package partition says where things belong. It defines Keys, and the Site whose politeness limits
// apply to a Key. It also defines the Slice of a Key, and the Members that are the replicas of that
// slice. All other packages use its terms.
//
// It is pure: no clock, no disk, no network, no logging, and no package state that changes. Given
// the same Charter and the same View, every peer on every architecture computes exactly the same
// result. So scores are integers and never floating point.
//
// The 64-bit space. A Slice is a prefix of one 64-bit space. It is written as the prefix's bits, a
// single 1 bit, then zeros, which is the form of S2 cell ids. S2 uses the three top bits for the
// six faces of the cube, 0 to 5. Faces 6 and 7 (the prefix 11) are free there and hold the hash
// slices. So one uint64 names a slice of either kind, and the store can order both kinds by it.
//
// The package does not decide what is crawled, when, or which peers are alive.
package partition
