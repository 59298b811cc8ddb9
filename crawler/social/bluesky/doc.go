// Package bluesky is how package social asks AT Protocol: what its client says, in the words of package account.
package bluesky
