package dht

import (
	"log/slog"

	golog "github.com/ipfs/go-log/v2"
	"github.com/libp2p/go-libp2p/gologshim"
)

// LogTo sends what libp2p logs of itself to h instead of to standard error,
// and silences Kademlia, whose failures this package reports. It holds for the
// whole process: main calls it once, before the first New. Libraries and tests
// need not.
func LogTo(h slog.Handler) {
	gologshim.SetDefaultHandler(h)
	golog.SetAllLoggers(golog.LevelFatal)
}
