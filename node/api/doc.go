// Package api is one peer's HTTP interface: the JSON API of /api/v1, metrics, health and the
// login of the dashboard. It also has the Client that the commands use. It takes a struct of
// functions (Peer) and never imports node.
//
// # Responses
//
// Every response of /api/v1 is JSON. Every error is a problem document (RFC 9457,
// application/problem+json). Its instance ends in "#" and the request's ID, which the log also
// has. Status 422 means a parameter or body that is well-formed HTTP but not valid. 400 means
// that the request cannot be read, and 501 that this version does not support it. An unknown
// parameter is refused, so no misspelt filter is silently ignored. GET /openapi.json describes
// the whole API.
//
// # Export
//
// GET /api/v1/export streams JSON lines. Each line is a store.Record with "cursor" as its last
// field. After an interruption, the client cuts its file after the last line feed, reads the
// cursor of the last line and continues with ?cursor=. Nothing is sent twice, and every record
// that was stored at the time of the first request is sent. A complete export ends with the
// trailers Echo-Cursor (of the last line) and Echo-Missing (a JSON list of what did not
// respond). When an export fails, the server cuts the connection and sends no trailers, so a
// truncated export never looks complete.
//
// # Access
//
// Without a token for all requests, the server may be bound to a loopback address only. Then
// every user of the machine may read. Changes (any method except GET, HEAD and OPTIONS) need
// the operator's token; without such a token nothing can be changed. The server accepts only
// loopback names in Host, so no page in a browser can reach it under a name of its own (DNS
// rebinding). With a token for all requests, every request needs it. A client sends the token
// as "Authorization: Bearer TOKEN", or sends a cookie. The cookie comes from POST /login, or
// from a link with a code that works once (LoginPath). These paths need no token: /healthz,
// /readyz, /openapi.json, /login and the dashboard's static files.
//
// The server refuses, on every route, a request that a browser makes for a page of another
// origin. It uses Sec-Fetch-Site, or Origin and Referer if the browser does not send it. The
// reason: an image could start a query or an export. A link to the first page or the login is
// allowed. A browser that does not say where a request comes from needs the token to read, too.
//
// Text that strangers wrote is cleaned in every problem and escaped in every other JSON
// response, so neither can control a terminal (package safetext).
//
// Every request has limits on headers, body, time and number; see limits.go.
package api
