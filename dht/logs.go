package dht

import (
	"log/slog"

	golog "github.com/ipfs/go-log/v2"
	"github.com/libp2p/go-libp2p/gologshim"
)

// LogTo sends libp2p's log to h instead of standard error. It also silences Kademlia, because this
// package reports Kademlia's failures itself. It affects the whole process. main calls it once,
// before the first New. Libraries and tests need not call it.
func LogTo(h slog.Handler) {
	gologshim.SetDefaultHandler(h)
	golog.SetAllLoggers(golog.LevelFatal)
}
