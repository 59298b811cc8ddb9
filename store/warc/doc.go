// Package warc writes records as WARC 1.1 (ISO 28500:2017), each WARC record a
// gzip member of its own, so that a file may be cut and gone on with between any
// two, and readers may begin at any.
//
// It promises: what a Writer has written is the same bytes for the same input,
// record ids included, so that an export that was cut off and went on is the
// file that it would have been. It decides nothing: what is written, and in
// which order, is the caller's.
package warc
