// Package web is the Source of web pages: a page Key to its title, text,
// language, date and links. It fetches the files of accounts, too: what is said of
// robots.txt, pace and failures holds for both.
//
// One Fetch makes at most one request to a site. When the robots.txt of a
// page's origin is not known, that is the request, and the Key is asked for
// again after the site's delay (fetch.Result.Again).
//
// What a Key becomes is fixed here and does not depend on timing:
//
//	2xx                          done, with a record
//	3xx                          done, with a record that names the target; the target is a link
//	304                          done, the record stays
//	404, 410                     gone
//	other 4xx                    refused
//	429, 503                     later, the site is asked less (Retry-After obeyed); refused after Retry.Attempts
//	5xx, no or a broken answer   later, refused after Retry.Attempts
//	disallowed by robots.txt     refused
//	robots.txt unreachable       the site is asked again Retry.Attempts times, then its Keys are refused
//	Crawl-delay over MaxLag      refused, the site is stopped
//
// A file of an account (media.go) differs: done only with all of its bytes, where they
// are those of a picture, sound or film and at most MaxFile; a 3xx has its target asked
// for as a file of the same account, once; all else is refused.
//
// Extraction is bounded in time, text and links, gives the same answer for the
// same bytes, and cannot panic its caller. It does not judge whether a page
// belongs to the collection (focus) or when to look again (schedule).
package web
