// Package account has the words that the parts of package social share: the state of a Key between two fetches, what a
// service shows of accounts and posts, and what is asked of a service.
package account
