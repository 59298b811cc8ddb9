package api

import "time"

// Limits of what one request may cost.
const (
	maxHeaderBytes = 32 << 10
	maxSeedBytes   = 4 << 20 // body of POST /api/v1/seeds
	maxFormBytes   = 1 << 20 // body of any other request
	maxSeedKeys    = 10_000
	maxKeyText     = 4096 // bytes of one Key or URL as typed
	maxQueryText   = 1024 // bytes of q
	maxFilterText  = 512  // bytes of kind, lang, site
	maxCursor      = 4096
	defaultLimit   = 10
	maxLimit       = 1000
	minWait        = 10 * time.Millisecond // of a query's timeout
	maxWait        = 25 * time.Second      // less than defaultTimeout
	maxConns       = 256
	maxExports     = 4 // at a time
	maxMissingText = 8 << 10

	readHeaderTimeout = 10 * time.Second
	readTimeout       = 60 * time.Second
	idleTimeout       = 2 * time.Minute
	defaultTimeout    = 30 * time.Second // for one response, except an export
	// an export's reader that reads nothing for this long is cut off
	stallTimeout  = 30 * time.Second
	shutdownGrace = 5 * time.Second
	// after this part of the grace, a message tells a waiting person the reason
	saidAfter = time.Second
)

// Limits of what a Client reads.
const (
	maxAnswer     = 64 << 20 // bytes of one JSON response
	maxProblem    = 1 << 20
	maxExportLine = 64 << 20
	askTimeout    = 2 * time.Minute // for one response, except an export
)
