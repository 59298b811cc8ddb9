// Package rounds looks again at posts that are kept, in a slow round, within a share of the budget: what was edited,
// deleted, or is not to be kept any more is found by it, and posts that appear below the newest, by the number that the
// profile claims.
package rounds
