// Package format defines the rows of a store: their keys, their values, and how two states of one
// item join. Values have a version. The package is pure. It never allocates more than a limit,
// whatever a value claims.
//
// # Rows
//
// Pebble orders rows by the bytes of their keys. A row's key is the letter of its table, then the
// fields below. Numbers are big-endian, 8 bytes. SITE ends with a zero byte, which no Site or Key
// contains. A Key or name is the rest of the row's key.
//
//	00 NAME                                  of the store itself:
//	   "format"  uvarint                       FormatVersion
//	   "charter" JSON                          partition.Charter
//	   "id"      16 bytes                      random, of this store and its copies
//	   "seq"     number                        all numbers in use are below it
//	   "trimmed" number                        the change log is trimmed up to it
//	   "fetches" number                        fetches of slices that were dropped
//	01 NAME                                  Meta, SetMeta: the bytes
//	'A' SLICE SUM                            a body, once in a slice
//	'B' SLICE SITE ORIGIN                    one robots.txt of a site
//	'C' SLICE SITE                           counts of a site in a slice
//	'D' SLICE SITE HOUR PRIORITY(1) SEQ      due index: the Key
//	'E' SLICE SUM SITE KEY 00 CLASS TIME     nothing: that capture uses that body
//	'F' SLICE SITE LIST 00 ACCOUNT           an account that was seen in a list
//	'G' SLICE POSITION                       log of a slice: the rows a batch wrote
//	'H' SLICE NAME(1) REST                   a row named in a part of the log that was cut
//	'I' SLICE SITE KEY 00 TIME SUM           override: TIME is At, SUM 8 bytes of SHA-256 of Verdict 00 By 00 Why
//	'J' SLICE SITE KEY 00 TIME SUM           gap: TIME is From, SUM 8 bytes of SHA-256 of What 00 About
//	'K' SLICE SITE KEY                       key state
//	'L' SEQ                                  change log: the Key; of a post KEY 00 URI
//	'N' SITE                                 the slice of the site's pace that was written last
//	'O' SEQ                                  outbox row
//	'P' SLICE SITE                           pace of a site (Site, without robots.txt)
//	'R' SLICE SITE KEY                       record
//	'S' SLICE SITE KEY 00 URI                post
//	'T' SLICE SITE KEY 00                    attempts at a Key: the process that is about to judge it, and deaths
//	'U' SLICE UNIT                           placement of a unit: the slice that crawls its Keys
//	'V' SLICE SITE KEY 00 CLASS(1) TIME      a visit to a Key: a version, or one that found nothing new
//	'W' KEY                                  the geo slice that its record is in
//	'X' SLICE KEY                            the SEQ of the outbox row of that slice for that Key
//	'Y' SLICE SITE LIST 00 TIME              walk of a list; TIME is when it began
//	'Z' SLICE SITE KEY 00                    checkpoint
//
// The table comes first, so that the small rows of the frontier, which are read all the time, are
// not between records, which are read seldom. Inside every table, rows are ordered by slice, site
// and Key. So a slice, or a site of it, is one range of each table.
//
// HOUR is Due.At in Unix seconds, cut to the hour. Exactly the Keys with a time (pending, or to be
// revisited) have a row in 'D'. One counter gives SEQ for all three uses. It is reserved on disk in
// blocks, so no number is used again after a crash.
//
// # Values
//
// The first byte is the version of the value, 1. uv is an unsigned varint. text is a uv length and
// bytes. time is a signed varint of microseconds since 1970 UTC, or the smallest 64-bit number for
// the zero time.
//
//	key state   1 state(1) seed(1) priority(1) at:time depth:uv attempts:uv seq:uv
//	            admitted:time fetched:time referrer:text reason:text etag:text
//	            last-modified:text digest:text [history:text]
//	counts      1 pending:uv done:uv gone:uv refused:uv due:uv records:uv fetches:uv
//	            [placed:uv [posts:uv [files:uv bytes:uv [quarantined:uv]]]]
//	outbox row  1 slice:uv to:uv key:text referrer:text depth:uv priority(1) seed(1)
//	            [gen:uv next:time wait:uv back-off:uv fetched:uv, to a geo slice; gen 0: to no geo slice
//	            [kind(1) seconds:uv]], a Hint
//	placement   1 to:uv gen:uv at:time why:text
//	log entry   1 span:uv ordinal:uv before:uv rows:uv, then for each row, in order:
//	            name(1) shared:uv rest:text, and fetched:time when name is 'K'
//	edge        1 n:uv, then n times, by first: first:time last:time gone:time
//	walk        1 at:time seen:uv claimed+1:uv ended(1) complete(1) why:text
//	checkpoint  1 at:time bytes:text, packed
//	attempts    1 attempt ended:time n:uv, then n times: attempt, a death
//	attempt     at:time peer:text run:text
//	packed      1 01 bytes | 1 02 length:uv zstd-frame
//	capture     1 revisit:text of:time status:uv digest:text redirect:text peer:text addr:text
//	            protocol:text request:text response:text sum:text cut(1) record:text, then packed
//
// Records, paces, robots.txt, captures, bodies, posts, gaps, overrides and checkpoints are packed.
// A post is the JSON of {"record", "edits", "gone"}, a gap that of Gap, an override that of
// Override. A record is the JSON of Record, which is also the line of an export: any tool can read
// it in twenty years. Compressed, it is as small as a binary form, because most of it is text.
// Nothing expands to more than its limit, whatever a value claims.
//
// # Versions and bodies
//
// A stored visit to a Key is a capture. CLASS 1 is a version. CLASS 2 is a visit that found the
// previous version (304, or the digest of the previous record). TIME is microseconds since 1970
// with the first bit inverted; it grows from one capture of a Key to the next. Captures never
// change. The newest MaxVersions and MaxRevisits of a Key stay. A version is the exchange with the
// SUM (SHA-256) of its body, written with the record. Where bodies are not stored, a version is the
// record itself, written when the next version replaces it. If a page says noindex or noarchive,
// all its captures are deleted.
//
// A body exists while a capture of its slice uses it; the rows 'E' list the uses. Each replica
// makes its own rows 'E' and 'A' from its captures. On the wire, a capture is 1 row:text body:text,
// complete. So a body that Keys of two slices use exists twice, and each slice can move or be
// dropped alone.
//
// A directory from before captures existed opens without change: it has none.
//
// # Posts, lists, gaps
//
// Besides the record, a fetch of an account or a timeline produces items. These are rows of its
// Key, written in the batch of the commit (I3). The states of an item join, so rows may come twice,
// late and in any order, and two replicas that wrote separately get the same result (I6):
//
//   - Of a post, the later fetch is the record. Earlier texts are edits, the newest MaxPostEdits.
//     A tombstone is a version too. It deletes everything fetched up to it: text, media and
//     edits. A later fetch undoes it. The wish not to be archived also deletes what came before.
//   - Of an account in a list, the spans of time join, the newest MaxEdgeSpans. No row says that
//     an account is gone: that follows from the next complete walk.
//   - Of a walk, the one that got further stays; of a gap and a checkpoint, the later.
//   - An override (a person's decision on an account) never changes.
//
// Of gaps, walks and overrides, the newest MaxKeyGaps, MaxWalks and MaxOverrides of a Key stay.
// Each replica finds them by itself. The lists of an account are in its slice. An older directory
// opens without change.
//
// # Attempts
//
// Before a process judges what it fetched for a Key, it writes an attempt durably (Try). The Commit
// removes the row in its batch. If another process finds the row, the process that wrote it died
// during the attempt. The row then keeps these deaths, and the Key is judged alone. At MaxDeaths
// deaths the Key is quarantined (state 6, StateQuarantined); Release deletes the row. An older
// directory opens without change. An older program refuses a directory that has a Key in state 6.
//
// # Files of accounts
//
// A file that a post or a profile names is a Key of the account's slice, and its exchange is a
// capture. The batch that removes the last use of the file in the account withdraws it. Then its
// Key stays at every replica, gone, without record and captures. See file.go.
//
// # The log of a slice
//
// While a slice is logged (SetLogged), each batch that writes rows of it also writes an entry at
// the next position. The entry has the names of the rows, not their contents. So the log is small,
// and in order of visibility. POSITION begins at 1. An entry covers span positions: several if a
// follower got them as one log chunk, none if the log begins behind a snapshot. ordinal counts
// entries. before is the bytes of the entries before this one, so the two ends of a log tell its
// length.
//
// A row's name is the letter of its table, and its key after the slice; the first shared bytes of
// the key are those of the previous row. 'K' has the time of the Key's last fetch at that batch;
// 'N' is a Key never fetched. 'Q' is a 'P' whose robots.txt did not change: the value of 'P' in the
// store, without bodies. An 'X' without a value was sent; a 'V' or a 'T' without a value was
// deleted. Items are named by the letters of their tables. Any other deleted item is not
// replicated.
//
// Replication sends the present state of the rows: ReadLog and ApplyLog say what a follower may
// rely on. Of two states of a Key, and of two records, a follower keeps the later; of captures, it
// keeps the latest. So Commit makes the new state later than the previous one, whatever the clock
// says.
package format
