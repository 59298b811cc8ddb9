// Package stream reads the streams that tell of accounts as they post: a Jetstream of Bluesky, and the public streams
// of Mastodon-compatible servers. What is told of an account waits as an Event for the account's next visit, which is
// asked for at once; subscriptions.go says what that rests on.
package stream
