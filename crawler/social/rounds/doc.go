// Package rounds looks at kept posts again, in a slow round, within a share of the rate budget. It
// finds posts that were edited or deleted, or that must not be stored any more. From the number of
// posts that the profile claims, it finds that posts appeared below the newest.
package rounds
