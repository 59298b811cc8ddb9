// Package safetext makes text of strangers safe to show. Pages, servers and peers write titles,
// reasons and errors. Shown unchanged, they could control a terminal (escape sequences) or
// forge a line of a log. They could also show words in another order than the stored one
// (bidirectional overrides).
//
// # Hostile characters
//
//   - Control characters: C0, DEL and C1, and bytes that are not UTF-8, because a terminal may
//     treat 0x9b as the beginning of a sequence. Each becomes U+FFFD, so a reader sees that
//     something was there.
//   - Characters without their own shape: bidirectional marks, embeddings, overrides and
//     isolates, invisible operators, the byte order mark, tags. They are removed. The joiners
//     U+200C and U+200D stay: Persian and emoji need them.
//   - Line and paragraph separators, and the control characters that mean white space. They
//     become a line feed or a space.
//
// # Where it is applied
//
// Each output has one place. Package main wraps standard output and standard error once.
// Package api cleans every problem and escapes every JSON response. Package ui cleans each page
// as a whole. JSON loses nothing: hostile characters are escaped in it, as in \u202e.
package safetext
