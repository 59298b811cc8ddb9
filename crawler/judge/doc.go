// Package judge has no code. Its children judge what was fetched:
//
//	lang        in which language a text is, or a person writes
//	community   whether an account belongs to the collected community
//	period      which times a text is about
//	promise     which links probably lead to pages about a wanted time
//	duplicates  which texts are copies of each other
//
// partition/geo finds the place that a text means.
//
// Every judge is pure: no clock, no disk, no network, no package variable that changes. It takes
// what was fetched and returns a verdict with the evidence for it. The crawl decides what to do
// with the verdict. Each judge can be used alone: echo-node focus.
package judge
