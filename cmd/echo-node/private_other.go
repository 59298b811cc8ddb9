//go:build !unix

package main

import "io/fs"

// closeFiles does nothing: the directory's permissions decide who may open a file.
func closeFiles() {}

// abortOnPanic does nothing: a panic ends the process in Go's normal way.
func abortOnPanic() {}

// ownedByUs returns true, because files have no numeric owner here.
func ownedByUs(fs.FileInfo) bool { return true }
