// Package bluesky is a thin client of AT Protocol services. An AppView serves profiles, author
// feeds, followers and follows, search, and posts by address. A PDS serves the original records of
// an account, new records, deletes and edits. The directory serves the documents of DIDs, and
// Jetstream a stream of events. A crawler.Source of bluesky: keys uses this package. It does not
// decide when to send a request or how to use a response.
//
// # How a Source uses it
//
// It is used like crawler/mastodon. One Client serves one server. It opens no connection itself:
// each request is a Call to Options.Do. So crawler/fetch provides the pace, the caps and the guard
// against private addresses. The guard is important here, because anybody can write the document
// that names an account's PDS.
//
//	view, err := bluesky.New(bluesky.Options{Base: "https://public.api.bsky.app", Do: do})
//	found, absent, err := view.Profiles(ctx, dids)            // 25 a call
//	base, path, err := bluesky.DocumentAddress(did, "https://plc.directory")
//	who, err := directory.Document(ctx, did)                  // a Client of base: where its PDS is
//	tl, err := pds.Timeline(bluesky.RecordsOf(did, bluesky.Posts), mark, bluesky.Reading{})
//
// A timeline is read from a Mark, a list from a Checkpoint. Both are bytes that the caller commits
// in one batch with their page (I3).
//
// # How the services differ from expectations
//
//   - A missing account or record is 400 InvalidRequest and not 404; Profiles and Posts
//     silently leave it out.
//   - An AppView has no parameter for new posts: its feed is read down to the known
//     posts. A PDS has one: the key of the last record read (listRecords, reverse). Keys
//     are in the order of creation, unless a program chose others. Rev shows that
//     something was written below the mark, and a reading from the zero Mark finds it.
//   - An AppView may keep showing the first version of a post. The PDS shows edits, by
//     the CID of a record, and deletes, by its absence.
//   - A cursor may lead to the same page forever. An unknown cursor gets a 500. Search
//     may be 403, and with a cursor always is.
//   - The AppView sends no rate limits; the PDS does (RateLimit-*, epoch seconds).
//
// A list or a reading that ends well is Complete; every other one has a Word with the reason.
package bluesky
