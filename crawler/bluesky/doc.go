// Package bluesky is a thin client of AT Protocol services: of an AppView (profiles, author feeds,
// followers and follows, search, posts by address), of a PDS (the records of an account as
// they are, what came since, what was deleted or changed), of the directory of DIDs, and of
// Jetstream. It is what a crawler.Source of bluesky: Keys is built on, and decides neither when
// to ask nor what becomes of an answer.
//
// # How a Source uses it
//
// As crawler/mastodon is used. One Client is one server; it makes no connection of
// its own, each request is a Call given to Options.Do, so that pace, caps and the guard of private addresses are those
// of crawler/fetch. That matters here: where an account's PDS is, a document says that anybody may write.
//
//	view, err := bluesky.New(bluesky.Options{Base: "https://public.api.bsky.app", Do: do})
//	found, absent, err := view.Profiles(ctx, dids)            // 25 a call
//	base, path, err := bluesky.DocumentAddress(did, "https://plc.directory")
//	who, err := directory.Document(ctx, did)                  // a Client of base: where its PDS is
//	tl, err := pds.Timeline(bluesky.RecordsOf(did, bluesky.Posts), mark, bluesky.Reading{})
//
// A timeline is read from a Mark, a list from a Checkpoint; both are bytes, to be
// committed in one batch with the page that they come with (I3).
//
// # What the services do otherwise than one would think
//
//   - What is not there is 400 InvalidRequest and not 404; Profiles and Posts leave it out without a word.
//   - An AppView has no parameter for what came since: its feed is read down to what is known. A PDS
//     has: the key of the last record read (listRecords, reverse). Keys are in the order of their
//     making, unless a program chose others: what is written below the mark Rev tells of, and a reading
//     from the zero Mark finds.
//   - An AppView may keep showing a post as it was first: changes and deletions are seen
//     at the PDS, in the CID of a record and in its absence.
//   - A cursor may lead to the same page for ever; one that is not known is answered
//     with 500. Search may be 403, and 403 with a cursor always.
//   - The AppView tells of no limit, the PDS does (RateLimit-*, epoch seconds).
//
// A list or a reading that ended well is Complete; every other has a Word that
// says why not.
package bluesky
