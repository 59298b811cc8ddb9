// Package service holds the common parts of the clients of services (crawler/mastodon,
// crawler/bluesky, crawler/twitter). These are single requests and their results, credentials that
// cannot be printed, tolerant JSON decoding, and paging. Paging ends even if a server returns bad
// cursors. The package does not depend on any service.
//
//   - Client sends requests to one server through a given Do, and returns JSON or a Fault.
//   - Trail follows a chain of cursors and detects a loop.
//   - Edges reads a list (followers, following) and compares it with its count.
//   - Timeline reads a feed from a Mark, upward if the service can, else downward.
//
// This package does not connect, wait or store. The only rate limit header it reads is Retry-After.
// Options.Do sends the request within a budget and settles it with the response (crawler/budget). A
// Checkpoint and a Mark are bytes that the caller stores together with their page (I3).
package service
