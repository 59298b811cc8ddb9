// Package social is the Source of accounts: it follows people of Mastodon-compatible
// servers, of Bluesky and of X by their APIs, within the budget of each credential.
//
// # One fetch
//
// A fetch is a bounded piece of work on one Key, at most Options.Calls requests, and its
// result is committed as one batch (I3) with where it stands, the Key's checkpoint
// (fetch.Task.Checkpoint), which goes with its slice. So after a crash, or at another
// peer, the same pages are asked for again and none is left out.
//
//	mastodon:user@host              the profile, and the posts since the last one read
//	mastodon:user@host/followers    some pages of the list
//	mastodon:user@host/following    the same
//	mastodon:host/tag/T, host/public   the posts since the last one read
//	bluesky:DID, twitter:ID            as mastodon:user@host, and their lists
//	bluesky:search/Q, twitter:search/Q the posts since the last one read
//	bluesky:HANDLE, twitter:@NAME      whose name it is: a link to that account, which is followed as if it had been
//	named
//
// It goes in this order:
//
//	load     where the Key stands, and what is kept of it (account.State, package store)
//	decide   whether it belongs, and what is asked (packages follow, pace, State.Looks): pure
//	fetch    by the API of its service, within the rate budgets (packages mastodon, bluesky, x; calls)
//	fold     what came into one batch (package fold): pure
//	commit   by who called Fetch: the batch is its Result
//
// What differs between services stands behind account.API, one of which each visit has. All else, budgets, checkpoints,
// who is followed, gaps, tombstones, when to look again, is one for all.
//
// A visit to an account begins with a look-up of it, where that costs a part of a call: a service looks up
// many with one, and whoever looks up brings the others along that are due (ahead.go). It tells how many posts there
// are: the same number as before the last reading is no reason to read. Bluesky's repositories say so themselves.
//
// # Old posts
//
// A reading shows the newest posts only. All others that are kept are looked at again in a slow round (package
// rounds), many with one call where the service can, within a share of the budget: what was edited, deleted, or is not
// to be kept any more is found by it, and posts that appear below the newest by the number that the profile claims.
//
// # Streams
//
// A Jetstream (Options.Jetstream, Listen) tells of posts as they are made, changed and deleted. What it says of an
// account that is followed here is taken by a visit of that account, which asks nobody; package stream says what that
// rests on. So do the public streams of Mastodon-compatible servers (Options.Streams), which have no cursor, and tell
// of some posts only.
//
// # Pace and politeness
//
// The pace of an API is what its server allows each credential (packages calls and budget), and
// not the gap between requests to a web host: the crawler keeps none for a site that is Budgeted,
// and the address of such a server has no turn among peers, as each peer asks with an
// allowance of its own. Every request waits for Task.Gate all the same (the volunteer's
// limits, ownership of the slice) and passes the guard of private addresses. robots.txt is for who
// follows links through pages, and is not asked for the API, which is made for programs; what people say about being
// collected is obeyed (account.Opted).
//
// Where the calls do not do for all that is due, they go to whom they bring posts soonest from, and to what is new
// before what may have been edited (pace.Prices).
//
// A credential belongs to this peer: it is in no record, log line, or message to
// another peer.
//
// # Who belongs
//
// Rules say whom to follow. Where they have a community, each account is judged when its profile is
// had, by that, the texts that are kept of it, and the verdicts in this peer's store on whom it
// follows, is followed by and mentions; the verdict is kept in the record. Who is in is followed and leads to
// others; who is out is looked at again in a month. Of who is undecided is asked what tells most for its calls (first
// posts, or its lists), after a wait that is the shorter the likelier that decides, and without a call it is
// judged again after hours, then days, as its neighbours may have been. What persons said (store.Override) goes before
// all that.
package social
