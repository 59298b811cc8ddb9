// Package mastodon is a thin client of servers that speak Mastodon's REST API
// (Mastodon, GoToSocial, snac, Pleroma, Akkoma and others): profiles, posts of an
// account since the last seen, followers and following, hashtag and public timelines,
// search, deletes and edits. It is what a crawler.Source of mastodon: Keys is built on,
// and decides neither when to ask nor what becomes of an answer.
//
// Client.Stream reads a public or hashtag stream of server-sent events, where a server has it (GoToSocial has
// WebSockets only) and lets in who asks (Mastodon since 4.2 wants a token).
//
// # How a Source uses it
//
// One Client is one server with one credential or none. It makes no connection
// of its own: each request is a Call given to Options.Do, so that pace, user agent, caps, the guard of
// private addresses and the Gate of a Task are those of crawler/fetch:
//
//	do := service.Through(fetchClient, task.Gate)
//	c, err := mastodon.New(mastodon.Options{Base: "https://" + key.Host(), Do: do})
//
// A Call names its class, whether it pages and whether it carries the
// credential, so that a budget can refuse it before it is sent (Do then returns an error, which
// comes back wrapped), signed with another credential of the server (Credential.Sign), and settled with what its
// answer says of the limits (package budget).
//
// What a server can do is found out by Probe and kept as bytes (Server.Encode)
// until it expires. A timeline is read from a Mark, a list from a
// Checkpoint; both are bytes as well, and are to be committed in one batch with the page that they
// come with (I3), so that after a crash a page is read again and none is lost. The Keys of what is found are
// Profile.Key, Mention.Key, TagKey and the links of a post; Profile.Raw and Post.Raw are
// for Record.Raw.
//
// # What servers do otherwise than their documents say
//
//   - ids are opaque: snowflakes, ULIDs, hashes, as strings or as numbers. They are never
//     compared by size; what is new is what was not seen.
//   - since_id is ignored by some, min_id by others, and both, max_id and limit, by
//     snac. What a page holds is checked against what was asked, whatever a probe said
//     before, and a reading goes on in the next best way.
//   - A cursor may repeat, a chain of cursors may have no end. A walk stops at a cursor or a page
//     that came before (Brent's cycle finding, BIT 20, 1980: constant memory),
//     at a page without anything new, and at Limits.
//   - Counts and lists differ. A list that is not what it claims to be is marked incomplete, with a Word.
//   - A timeline that is closed may answer 200 with []. A web server in between may
//     answer HTML, with any status; that is never taken for an answer of the API.
//
// A list or a reading that ended well is Complete; every other has a Word that
// says why not. Nothing is gone because a list left it out: only Post and Account, asked for that id, can say
// so, and twice is better than once.
package mastodon
