// Package web is the Source of web pages. It turns a page Key into the page's title, text,
// language, date and links. It also fetches the files of accounts. The same rules for robots.txt,
// pace and failures hold for both.
//
// One Fetch sends at most one request to a site. If the robots.txt of the page's origin is not
// known, that file is the request. The crawler then asks for the Key again after the site's delay
// (fetch.Result.Again).
//
// The outcome of a Key is fixed here and does not depend on timing:
//
//	2xx                          done, with a record
//	3xx                          done, with a record that names the target; the target is a link
//	304                          done, the record stays
//	404, 410                     gone
//	other 4xx                    refused
//	429, 503                     later, at a slower pace (Retry-After is obeyed); refused after Retry.Attempts
//	5xx, no or a broken response later; refused after Retry.Attempts
//	disallowed by robots.txt     refused
//	robots.txt unreachable       retried Retry.Attempts times, then the site's Keys are refused
//	Crawl-delay over MaxLag      refused, the site is stopped
//
// A file of an account (media.go) differs. It is done only if all its bytes came, they are a
// picture, a sound or a film, and they are at most MaxFile. After a 3xx, the target is fetched
// once, as a file of the same account. Every other outcome is refused.
//
// The extraction has limits for time, text and links. It gives the same result for the same bytes,
// and it cannot panic its caller. It does not decide whether a page belongs to the collection
// (package crawler) or when to fetch it again (package schedule).
package web
