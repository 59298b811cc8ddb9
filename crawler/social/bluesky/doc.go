// Package bluesky is package social's adapter to the AT Protocol: it converts the client's answers
// to the types of package account.
package bluesky
