// Package mastodon is how package social asks Mastodon-compatible servers: what the client says, in the words of
// package account, and what each server was found to be.
package mastodon
