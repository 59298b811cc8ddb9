// Package x is how package social asks X: what its client says, in the words of package account, within the money of a
// day.
package x
