// Package store keeps one peer's durable state in one Pebble: the Keys it has
// been asked to crawl and when each is due, the latest record of each, the
// pace of each site, the links on their way to other slices, and a log of
// changes for the index.
//
// It promises: I1 (Admit), I2's part in it (no answer before it is durable),
// I3 (Commit is one batch), I4's means (SliceRows, ImportRows, DropSlice). It
// does not decide what is crawled or who owns what: times and Keys are given.
//
// # Rows
//
// Pebble orders rows by the bytes of their keys. A row's key is the letter of
// its table, then the fields below; numbers are big-endian, 8 bytes. SITE ends
// with a zero byte, which no Site or Key has; a Key or name is the rest.
//
//	00 NAME                                  of the store itself:
//	   "format"  uvarint                       FormatVersion
//	   "charter" JSON                          partition.Charter
//	   "id"      16 bytes                      random, of this store and its copies
//	   "seq"     number                        all numbers in use are below it
//	   "trimmed" number                        the change log is gone up to it
//	   "fetches" number                        fetches of slices dropped since
//	01 NAME                                  Meta, SetMeta: the bytes
//	'B' SLICE SITE ORIGIN                    one robots.txt of a site
//	'C' SLICE SITE                           counts of a site in a slice
//	'D' SLICE SITE HOUR PRIORITY(1) SEQ      due index: the Key
//	'K' SLICE SITE KEY                       key state
//	'L' SEQ                                  change log: the Key
//	'N' SITE                                 the slice of the site's pace written last
//	'O' SEQ                                  outbox row
//	'P' SLICE SITE                           pace of a site (Site, without robots.txt)
//	'R' SLICE SITE KEY                       record
//	'X' SLICE KEY                            the SEQ of the outbox row of that slice for that Key
//
// The table comes first, so that the small rows of the frontier, read all the
// time, do not lie between records, read seldom; inside every table rows are in
// order of slice, site, Key, so a slice, or a site of it, is one range of each.
//
// HOUR is Due.At in Unix seconds, cut to the hour. Exactly the Keys with a time
// (pending, or to be revisited) have a row in 'D'. SEQ comes from one counter
// for all three uses; it is reserved on disk in blocks, so that no number is
// used again after a crash.
//
// # Values
//
// The first byte is the version of the value, 1. uv is an unsigned varint, text
// is uv length and bytes, time is a signed varint of microseconds since 1970
// UTC, or the least 64-bit number for the zero time.
//
//	key state   1 state(1) seed(1) priority(1) at:time depth:uv attempts:uv seq:uv
//	            admitted:time fetched:time referrer:text reason:text etag:text
//	            last-modified:text digest:text
//	counts      1 pending:uv done:uv gone:uv refused:uv due:uv records:uv fetches:uv
//	outbox row  1 slice:uv to:uv key:text referrer:text depth:uv priority(1) seed(1)
//	packed      1 01 bytes | 1 02 length:uv zstd-frame
//
// Records, paces and robots.txt are packed. A record is the JSON of Record: the
// line of an export as it is, readable with any tool in twenty years, and as
// small as a binary form once compressed, its bulk being text. Nothing expands
// to more than its cap, whatever a value claims. A third packing is free for
// bodies that are kept once, under their digest.
//
// # Locks and syncs
//
// Calls that write take the locks of their slices (256 stripes), read, decide,
// and make their batch visible; then they let go and wait for the disk. So two
// calls of one slice are one after the other, which is I1, yet share a sync. An
// answer that rests on a row not yet durable waits for a sync as well.
//
// # After a crash
//
// A batch is there whole or not at all. All that a call acknowledged is there,
// but for PutSite, which says so. Numbers, counts and outbox are read back
// from small rows, never by reading all Keys.
//
// # A full disk
//
// The last 64 MiB (a twentieth of a small disk) are left free: writes answer
// ErrFull before, and go on when there is room. If the disk is full all the
// same, the write that met it answers ErrFull and the store writes no more;
// reads go on; start again when there is room. Any other refusal of a log sync
// is fatal (Options.Fatal).
package store
