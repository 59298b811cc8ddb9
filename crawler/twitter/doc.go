// Package twitter is a thin client of X's API v2. It reads users by id and by name, new posts of a
// user, followers and following, the search of the last week, and posts by id. A crawler.Source of
// twitter: keys uses it. The package does not decide when to send a request or how to use a
// response.
//
// It is used like crawler/mastodon. One Client is the API with one credential, which is the bearer
// token of an application or a person. Each request is a Call to Options.Do. A budget can refuse it
// before it is sent, because X charges for what the API returns. A timeline is read from a Mark, a
// list from a Checkpoint. Both are bytes that the caller commits in one batch with their page (I3).
//
// # How the API differs from expectations
//
//   - One response contains users, and in errors[] the reason why others are missing:
//     unknown, suspended, not visible to this client. The error of a whole request may
//     have status 200.
//   - There are two spellings, tweet and post (tweet.fields, includes.posts,
//     referenced_posts, ...). The Dialect learns from responses which one an endpoint
//     accepts, and which fields it refuses. Responses are decoded in both.
//   - Only the newest 3200 posts of a user are shown.
//   - A page may be empty and have a next page. A token may be refused, or lead to the
//     same page. The reading then continues below the lowest post read (until_id).
//   - An edited post is a new post that names those it replaces.
//   - A 429 says when to retry (x-rate-limit-reset), unless the monthly budget is spent.
package twitter
