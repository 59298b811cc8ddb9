// Package social is the crawler's Source for accounts. It follows accounts of Mastodon-compatible
// servers, of Bluesky and of X through their APIs, within the rate budget of each credential.
//
// # One fetch
//
// A fetch is a bounded piece of work on one Key, at most Options.Calls requests. Its result is
// committed as one batch (I3), together with the Key's checkpoint (fetch.Task.Checkpoint), which
// has the progress of the Key. The checkpoint moves with the slice. So after a crash, or at another
// peer, the same pages are asked for again and no page is left out.
//
//	mastodon:user@host                 the profile, and the posts since the last one read
//	mastodon:user@host/followers       some pages of the list
//	mastodon:user@host/following       the same
//	mastodon:host/tag/T, host/public   the posts since the last one read
//	bluesky:DID, twitter:ID            as mastodon:user@host, and their lists
//	bluesky:search/Q, twitter:search/Q the posts since the last one read
//	bluesky:HANDLE, twitter:@NAME      a link to the account that has this name; the account
//	                                   is followed as if a person had named it
//
// A fetch has these steps:
//
//	load     the state of the Key and its records (account.State, package store)
//	decide   whether the account belongs, and what is asked (follow, pace, State.Looks): pure
//	fetch    by the API of its service, within the rate budgets (mastodon, bluesky, x; calls)
//	fold     the answers into one batch (package fold): pure
//	commit   by the caller of Fetch: the batch is its Result
//
// The differences between services are behind account.API; each visit has one. Everything else is
// the same code for all services: budgets, checkpoints, who is followed, gaps, tombstones, when to
// visit again.
//
// A visit to an account begins with a look-up, if that costs only a part of a call. Some services
// look up many accounts with one call. Then a look-up includes other accounts that are due
// (ahead.go). The look-up returns the number of posts. If it has not changed since the last
// reading, the posts are not read. Bluesky's repositories say themselves whether they have changed.
//
// # Old posts
//
// A reading shows the newest posts only. All other kept posts are looked at again in a slow round
// (package rounds). If the service allows it, one call looks at many of them. Rounds use a share of
// the rate budget. They find posts that were edited or deleted, or that must not be stored any
// more. From the number that the profile claims, they find that posts appeared below the newest.
//
// # Streams
//
// A Jetstream (Options.Jetstream, Listen) reports posts as they are made, changed and deleted. An
// event about an account that is followed here is applied by a visit of that account, which needs
// no call. Package stream describes the guarantees. The public streams of Mastodon-compatible
// servers (Options.Streams) work the same way, but they have no cursor and do not report all posts.
//
// # Pace and politeness
//
// The pace at an API is what its server allows each credential (packages calls and budget). It is
// not the gap between requests to a web host: the crawler keeps no gap for a site that is Budgeted.
// The address of such a server has no host lease among peers, as each peer has its own allowance.
// Every request still waits for Task.Gate (the volunteer's limits, ownership of the slice) and
// passes the guard of private addresses. robots.txt is for programs that follow links through
// pages. It is not asked for an API, which is made for programs. The wishes of people about being
// collected are obeyed (account.Opted).
//
// If there are too few calls for all that is due, they go to the accounts that bring posts soonest.
// New posts go before posts that may have been edited (pace.Prices).
//
// A credential belongs to this peer. It never appears in a record, a log line, or a message to
// another peer.
//
// # Who belongs
//
// Rules decide who is followed. If they describe a community, each account is judged when its
// profile is fetched. The evidence is the profile, the stored texts of the account, and verdicts on
// other accounts in this peer's store. These are the accounts that it follows, mentions, or is
// followed by. The verdict is stored in the record. An account that is in is followed and leads to
// others. An account that is out is judged again in a month. For an undecided account the crawler
// fetches the evidence that helps most for its calls: first posts, then its lists. It waits before
// that, and the wait is shorter when that evidence is likely to decide. When nothing is left to
// fetch, the account is judged again without a call after hours, then days, as its neighbours may
// have been judged meanwhile. A human override (store.Override) takes precedence over all that.
package social
