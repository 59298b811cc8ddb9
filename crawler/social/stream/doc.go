// Package stream reads two kinds of streams: a Jetstream of Bluesky, and the public streams of
// Mastodon-compatible servers. A report about an account waits as an Event for the next visit of
// the account, which happens at once. subscriptions.go describes the guarantees.
package stream
