// Package api is one peer's HTTP surface: the JSON API of /api/v1, metrics,
// health and the login of the dashboard, and the Client that the commands use.
// It takes a struct of functions (Peer) and never imports node.
//
// # Answers
//
// Every answer of /api/v1 is JSON; every error is a problem document
// (RFC 9457, application/problem+json) whose instance ends in "#" and the
// request's ID, under which the log has it. 422 is a parameter or a body that
// is well-formed HTTP but not valid, 400 what cannot be read at all, 501 what
// this version does not do. A parameter that is not known is refused, so that
// no misspelt filter is silently ignored. GET /openapi.json describes it all.
//
// # Export
//
// GET /api/v1/export streams JSON lines: a store.Record and, as its last field,
// "cursor". Who was interrupted cuts its file after the last line feed, reads
// the cursor of the last line and asks again with ?cursor=; nothing is sent
// twice and nothing is left out that was stored at the time of the first
// request. When the export ended, the trailers Echo-Cursor (of the last line)
// and Echo-Missing (a JSON list, what did not answer) follow; when it broke,
// the connection is cut and there are none, so a truncated export never looks
// complete.
//
// # Who may ask
//
// Without a token for everybody the server may be bound to a loopback address only.
// Then anybody on the machine may read, and what changes something (any method but
// GET, HEAD and OPTIONS) needs the operator's token; without one nothing can be
// changed. The server answers only to loopback names in Host, so that no page in a
// browser can reach it under a name of its own (DNS rebinding). With a token for
// everybody every request needs it. It is shown as "Authorization: Bearer TOKEN", or
// as the cookie that POST /login gives for it, or a link with a code that works once
// (LoginPath). Free are /healthz, /readyz, /openapi.json, /login and the dashboard's
// static files.
//
// A request that a browser makes for a page of another origin is refused on every
// route (Sec-Fetch-Site; Origin and Referer of a browser without it), but for a link
// to the first page or the login: an image could start a query or an export. A browser
// that does not say where a request is from needs the token to read, too.
//
// What strangers wrote is cleaned in every problem and escaped in every other JSON
// answer, so that neither drives a terminal (package safetext).
//
// Every request has limits on headers, body, time and number; see limits.go.
package api
