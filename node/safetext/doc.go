// Package safetext makes text of strangers safe to show. Pages, servers and peers
// write titles, reasons and errors; shown as they are, they could drive a terminal
// (escape sequences), forge a line of a log, or show words in another order than
// they are stored in (bidirectional overrides).
//
// # What is hostile
//
//   - Control characters: C0, DEL and C1, and bytes that are no UTF-8, since a
//     terminal may take 0x9b for the begin of a sequence. Each becomes U+FFFD, so
//     that a reader sees that something was there.
//   - Characters without a shape of their own: bidirectional marks, embeddings,
//     overrides and isolates, invisible operators, the byte order mark, tags. They
//     are left out. The joiners U+200C and U+200D stay: Persian and emoji need them.
//   - Line and paragraph separators and the control characters that mean white
//     space: they become a line feed or a space.
//
// # Where it is applied
//
// Each way out has one place: package main wraps standard output and standard error
// once, package api cleans every problem and escapes every JSON answer, package ui
// cleans each page as a whole. JSON loses nothing: what is hostile is escaped in it,
// as in \u202e.
package safetext
