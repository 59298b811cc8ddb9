// Package social measures how much of what a community posts is fetched within a budget of
// API calls, as the dissertation on TwitterEcho did: per row of its table, by the mean gap
// between an account's posts.
//
// A [Community] is the truth, drawn from population table of contest: 60 % who do not
// post any more, the others in the table's rows in its shares, a night, sittings. A [Play] lets one
// policy of cmd/echo-lab/poll loose on it: its calls come at even gaps, as many as its budget allows, and a
// server that keeps its own count answers them:
//
//	look-up    of up to 100 accounts, the counter of posts and the last post
//	timeline   of one account, its newest 200 posts
//
// The six classes of TwitterEcho only look up. A peer plays for its share of the accounts, by the hash
// of their Keys, with a budget of its own.
//
// # What is counted
//
// As in the table: of the posts of the last 30 days, of each account the newest 168 (as many as
// the table has for each of its fastest accounts), how many are fetched; at eight moments, every three hours of the
// last day, so that no policy can prepare for one. A post that will be fetched later is missing.
//
// # The limit
//
// No policy, not one that knows the future either, has more than [Play.Limit]: at any moment it cannot
// have a post made after its last call; and a call gives at most one post of each of 100
// accounts, or what is counted of one account. So if all is fetched in the cheapest way, calls that bring
// most first, what the calls made until then can bring bounds what is fetched.
package social
