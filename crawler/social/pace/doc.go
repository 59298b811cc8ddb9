// Package pace decides when accounts are visited again. It uses how often they post, the price of a
// call at their site, and the site's quiet hours. The caller passes the time.
package pace

// maxSites is for how many sites data is held in memory.
const maxSites = 4096

// TrustedLess is the factor by which an account is read less often when a stream reports all its
// posts.
const TrustedLess = 4
