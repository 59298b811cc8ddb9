// Package mastodon is package social's adapter to Mastodon-compatible servers: it converts the
// client's answers to the types of package account, and remembers what each server supports.
package mastodon
