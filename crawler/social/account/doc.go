// Package account has the types that the parts of package social share: the state of a Key between
// two fetches, accounts and posts as a service shows them, and the interface to a service.
package account
