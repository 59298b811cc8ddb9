// Package social measures how much of a community's posts is fetched within a budget of API
// calls, like the dissertation on TwitterEcho. It does so for each row of the dissertation's
// table, by the mean gap between an account's posts.
//
// A [Community] is the truth, drawn from population table of contest. 60 % of its accounts do
// not post any more. The others are in the table's rows in its shares, with a night and
// sittings. A [Play] runs one policy of cmd/echo-lab/poll on it. The policy's calls come at
// even gaps, as many as its budget allows. A server that keeps its own count responds:
//
//	look-up    of up to 100 accounts, the counter of posts and the last post
//	timeline   of one account, its newest 200 posts
//
// The six classes of TwitterEcho only look up. A peer plays for its share of the accounts, by
// the hash of their Keys, with its own budget.
//
// # What is counted
//
// As in the table, the share of fetched posts is counted, over the posts of the last 30 days.
// Of each account the newest 168 count, as many as the table has for each of its fastest
// accounts. They are counted at eight moments, every three hours of the last day, so that no
// policy can prepare for one. A post that will be fetched later counts as missing.
//
// # The limit
//
// No policy exceeds [Play.Limit], even one that knows the future. At any moment it cannot have
// a post made after its last call. And a call returns at most one post of each of 100 accounts,
// or what is counted of one account. So suppose that all is fetched in the cheapest way, with
// the most productive calls first. Then what the calls made so far can return limits what is
// fetched.
package social
