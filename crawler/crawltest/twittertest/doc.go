// Package twittertest simulates the X API v2, for tests and benchmarks. The truth about it is
// known. Its people come from crawler/crawltest/storytest.
//
// It answers as X does. Users and posts are returned by the hundred, with errors[] for the missing
// ones. Timelines have since_id, until_id and tokens, and reach back to the newest 3200 posts.
// Lists have pages of up to a thousand, and the search covers seven days. Accounts may be protected
// or suspended, and an edited post gets a new ID. Limits per class have x-rate-limit-* headers, and
// every returned item costs money. Each known difference is a switch in Lies. Truth returns what a
// reader should know; Report returns what the server measured.
package twittertest
