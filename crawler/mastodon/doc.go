// Package mastodon is a thin client of servers with Mastodon's REST API (Mastodon, GoToSocial,
// snac, Pleroma, Akkoma and others). It reads profiles, new posts of an account, followers and
// following, hashtag and public timelines, search results, deletes and edits. A crawler.Source of
// mastodon: keys uses it. The package does not decide when to send a request or how to use a
// response.
//
// Client.Stream reads a public or hashtag stream of server-sent events. Not every server has one
// (GoToSocial has WebSockets only), and some require a token (Mastodon since 4.2).
//
// # How a Source uses it
//
// A Client serves one server with one credential or none. It opens no connection itself: each
// request is a Call to Options.Do. So crawler/fetch provides the pace, user agent, caps, the guard
// against private addresses and the Gate of a Task:
//
//	do := service.Through(fetchClient, task.Gate)
//	c, err := mastodon.New(mastodon.Options{Base: "https://" + key.Host(), Do: do})
//
// A Call names its class, whether it pages and whether it carries the credential. So a budget can
// refuse it before it is sent; Do then returns an error, which the client wraps. The budget can
// also sign the Call with another credential of the server (Credential.Sign). It settles the Call
// with the limits in the response (package budget).
//
// Probe finds out what a server can do. The result is stored as bytes (Server.Encode) until it
// expires. A timeline is read from a Mark, a list from a Checkpoint; both are bytes too. The caller
// commits them in one batch with their page (I3). So after a crash a page is read again, and no
// page is lost. The keys of what is found are Profile.Key, Mention.Key, TagKey and the links of a
// post. Profile.Raw and Post.Raw are for Record.Raw.
//
// # How servers differ from their documents
//
//   - Ids are opaque: snowflakes, ULIDs or hashes, as strings or as numbers. The client
//     never compares them by size; a post is new if it was not seen.
//   - Some servers ignore since_id, others min_id. snac ignores both, and max_id and limit
//     too. The client checks each page against its request, for any probe result, and
//     continues in the next best way.
//   - A cursor may repeat, and a chain of cursors may be endless. A walk stops at a
//     repeated cursor or page (Brent's cycle finding, BIT 20, 1980: constant memory), at
//     a page without new items, and at Limits.
//   - Counts and lists differ. A list that does not match its count is marked incomplete,
//     with a Word.
//   - A closed timeline may respond with 200 and []. A web server in front may respond
//     with HTML and any status; the client never treats that as a response of the API.
//
// A list or a reading that ends well is Complete; every other one has a Word with the reason. A
// post or account that is missing from a list is not necessarily gone. Only Post and Account can
// say so for its id, and two requests are more reliable than one.
package mastodon
