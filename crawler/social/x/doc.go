// Package x is package social's adapter to X: it converts the client's answers to the types of
// package account, within a daily amount of money.
package x
