// Package twitter is a thin client of X's API v2: users by id and by name, posts of a user since the last
// seen, followers and following, the search of the last week, posts by id. It is what a crawler.Source of
// twitter: Keys is built on, and decides neither when to ask nor what becomes of an answer.
//
// It is used as crawler/mastodon is: one Client is the API with one credential, an application's or a person's
// bearer token; each request is a Call given to Options.Do, which a budget can refuse before it is sent: the API is
// paid for by what it returns. A timeline is read from a Mark, a list from a Checkpoint; both
// are bytes, to be committed in one batch with the page that they come with (I3).
//
// # What the API does otherwise than one would think
//
//   - One answer has users and says of others why not, in errors[]: not there, suspended, not to be seen by who
//     asks. The error of a whole request may have the status 200.
//   - Two spellings are in use, tweet and post (tweet.fields, includes.posts, referenced_posts, ...). Which of them
//     an endpoint takes, and which fields it refuses, is learned from its answers (Dialect); what comes is read in
//     both.
//   - The newest 3200 posts of a user are shown, and no more.
//   - A page may have nothing and lead on; a token may be refused, or lead to the same page. A reading then
//     goes on below the lowest post that it has (until_id).
//   - An edited post is a new one that names those it replaces.
//   - 429 says when (x-rate-limit-reset), unless it is the month's money that is spent.
package twitter
