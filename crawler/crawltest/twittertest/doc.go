// Package twittertest is a simulated X API v2 with known truth, to read in tests
// and benches. Its people are those of crawler/crawltest/storytest.
//
// It answers as X does: users and posts by the hundred with errors[] beside them, timelines by since_id, until_id and
// tokens down to the newest 3200, lists of a thousand, the search of seven days, protected and suspended accounts,
// edited posts with ids of their own, limits for each class with x-rate-limit-*, and money that is spent by
// what is returned. Every way in which it is found to differ is a switch in Lies. Truth says what
// a reader should know; Report what the server saw.
package twittertest
