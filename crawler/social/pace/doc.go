// Package pace says when accounts are looked at again: by how often they post, by the price of a call at their site,
// and in the quiet hours of a site. Time is an argument.
package pace

// maxSites is of how many sites something is held in memory.
const maxSites = 4096

// TrustedLess is how many times more seldom an account is read of which a stream tells all.
const TrustedLess = 4
