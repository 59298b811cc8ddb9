// Package format has the rows of a store: their keys, their values, and how two states of
// one item join. Values have a version. It is pure, and never allocates more than a cap,
// whatever a value claims.
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
//	'A' SLICE SUM                            a body, once in a slice
//	'B' SLICE SITE ORIGIN                    one robots.txt of a site
//	'C' SLICE SITE                           counts of a site in a slice
//	'D' SLICE SITE HOUR PRIORITY(1) SEQ      due index: the Key
//	'E' SLICE SUM SITE KEY 00 CLASS TIME     nothing: that capture has that body
//	'F' SLICE SITE LIST 00 ACCOUNT           an account that was met in a list
//	'G' SLICE POSITION                       log of a slice: the rows a batch wrote
//	'H' SLICE NAME(1) REST                   a row that a part of the log that was cut named
//	'I' SLICE SITE KEY 00 TIME SUM           override: TIME is At, SUM 8 bytes of SHA-256 of Verdict 00 By 00 Why
//	'J' SLICE SITE KEY 00 TIME SUM           gap: TIME is From, SUM 8 bytes of SHA-256 of What 00 About
//	'K' SLICE SITE KEY                       key state
//	'L' SEQ                                  change log: the Key; of a post KEY 00 URI
//	'N' SITE                                 the slice of the site's pace written last
//	'O' SEQ                                  outbox row
//	'P' SLICE SITE                           pace of a site (Site, without robots.txt)
//	'R' SLICE SITE KEY                       record
//	'S' SLICE SITE KEY 00 URI                post
//	'T' SLICE SITE KEY 00                    attempts at a Key: which process is about to judge it, or died at it
//	'U' SLICE UNIT                           placement of a unit: where else its Keys are crawled
//	'V' SLICE SITE KEY 00 CLASS(1) TIME      a visit to a Key: a version, or one that found nothing new
//	'W' KEY                                  the geo slice that its record is in
//	'X' SLICE KEY                            the SEQ of the outbox row of that slice for that Key
//	'Y' SLICE SITE LIST 00 TIME              walk of a list; TIME is when it began
//	'Z' SLICE SITE KEY 00                    checkpoint
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
//	            last-modified:text digest:text [history:text]
//	counts      1 pending:uv done:uv gone:uv refused:uv due:uv records:uv fetches:uv
//	            [placed:uv [posts:uv [files:uv bytes:uv [quarantined:uv]]]]
//	outbox row  1 slice:uv to:uv key:text referrer:text depth:uv priority(1) seed(1)
//	            [gen:uv next:time wait:uv back-off:uv fetched:uv, to a geo slice; gen 0: not
//	            [kind(1) seconds:uv]], a Hint
//	placement   1 to:uv gen:uv at:time why:text
//	log entry   1 span:uv ordinal:uv before:uv rows:uv, then for each row, in order:
//	            name(1) shared:uv rest:text, and fetched:time when name is 'K'
//	edge        1 n:uv, then n times, by first: first:time last:time gone:time
//	walk        1 at:time seen:uv claimed+1:uv ended(1) complete(1) why:text
//	checkpoint  1 at:time bytes:text, packed
//	attempts    1 attempt ended:time cleared:time n:uv, then n times: attempt, a death
//	attempt     at:time peer:text run:text alone(1)
//	packed      1 01 bytes | 1 02 length:uv zstd-frame
//	capture     1 revisit:text of:time status:uv digest:text redirect:text peer:text addr:text
//	            protocol:text request:text response:text sum:text cut(1) record:text, then packed
//
// Records, paces, robots.txt, captures, bodies, posts, gaps, overrides and checkpoints are packed. A post is
// the JSON of {"record", "edits", "gone"}, a gap that of Gap, an override that of Override. A record is the JSON of
// Record: the line of an export as it is, readable with any tool in twenty years, and as
// small as a binary form once compressed, its bulk being text. Nothing expands
// to more than its cap, whatever a value claims.
//
// # Versions and bodies
//
// A visit to a Key that is kept is a capture, of CLASS 1 a version, of 2 one that
// found the version before (304, or the digest of the record before). TIME is
// microseconds since 1970, its first bit turned; it grows from one capture of a
// Key to the next. Captures are not changed; the newest MaxVersions and
// MaxRevisits of a Key stay. A version is the exchange with the SUM (SHA-256) of
// its body, written with the record; or, where bodies are not kept, the record
// itself, written when the next one takes its place. A site that says noindex or
// noarchive of a page has all captures of it forgotten.
//
// A body is there while a capture of its slice has it, and the rows 'E' say
// which; they, and 'A', are each replica's own, made from its captures. On its way
// to another peer a capture is 1 row:text body:text, whole. So a body that Keys
// of two slices have is there twice, and slices move and are dropped alone.
//
// A directory of before there were captures opens as it is: it has none.
//
// # Posts, lists, gaps
//
// What a fetch of an account or a timeline brings beside the record are items: rows
// of its Key, written in the batch of the commit (I3). The states of an item join, so
// that rows may come twice, late and in any order, and two replicas that wrote apart
// come to the same (I6):
//
//   - Of a post the later fetch is the record. The texts before it are edits, the
//     newest MaxPostEdits. A tombstone is a version too, and all fetched up to it is
//     forgotten, text, media and edits; a later fetch undoes it. So does the wish
//     not to be archived forget what came before it.
//   - Of an account in a list the spans of time join, the newest MaxEdgeSpans. Who
//     is gone is not written: it follows from the next complete walk.
//   - Of a walk the one that is further, of a gap and a checkpoint the later stays.
//   - An override (what a person says of an account) is never changed.
//
// Of gaps, walks and overrides the newest MaxKeyGaps, MaxWalks and MaxOverrides of a Key stay; each replica
// finds which they are by itself. The lists of an account are in its slice. A
// directory of before opens as it is.
//
// # Attempts
//
// Before a process judges what it fetched of a Key it writes so down (Try), durably; the Commit removes the row, in
// its batch. A row that another process than its own finds was under way when that one died. The row then keeps
// the deaths, until the Key is left alone (state 6, StateQuarantined) or, judged alone, is cleared. A directory of
// before opens as it is; one with a Key in state 6 is refused by a program of before.
//
// # Files of accounts
//
// A file that a post or a profile names is a Key of the account's slice, its exchange
// a capture. It is withdrawn in the batch that has nothing of the account name it any
// more: its Key stays, gone, without record and captures, at every replica. See file.go.
//
// # The log of a slice
//
// While a slice is logged (SetLogged), each batch that writes rows of it has an
// entry at the next position, in the same batch: the names of the rows, not what
// is in them. So the log is small, and in order of visibility. POSITION begins
// at 1; an entry covers span positions, several where a follower got them as one
// log chunk, none where the log begins behind a snapshot. ordinal counts entries,
// before the bytes of those before it, so that a log's two ends tell its length.
//
// A row's name is the letter of its table, and its key after the slice, of which
// shared bytes are those of the row before. 'K' tells when the Key was fetched
// last, as of that batch; 'N' is a Key never fetched. 'Q' is a 'P' whose
// robots.txt did not change: the value of 'P' in the store, bodies left out. An
// 'X' without a value was sent, a 'V' or a 'T' without one is gone. Leaves are named by the
// letters of their tables; one that is gone is left out of what is replicated.
//
// What is replicated is the rows' state, read when it is replicated: ReadLog and
// ApplyLog say what a follower may rely on. A follower keeps the later of two
// states of a Key and of two records, and of captures the latest; so Commit makes
// the new one later than the one before, whatever the clock says.
package format
