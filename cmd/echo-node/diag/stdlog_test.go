package diag

import (
	"bytes"
	"log"
	"log/slog"
	"strings"
	"testing"
)

// A server that makes net/http log a line for every frame does not fill the disk.
func TestAttackLogFlood(t *testing.T) {
	var out bytes.Buffer
	l := log.New(newStdLog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))), "", 0)
	for range 10_000 {
		l.Print("Unsolicited response \x1b[31m", strings.Repeat("more", 1000))
	}
	if n := strings.Count(out.String(), "\n"); n == 0 || n > stdLineBurst+1 || out.Len() > n*(maxStdLine+200) ||
		strings.Contains(out.String(), "\x1b") {
		t.Errorf("%d lines of %d bytes", n, out.Len())
	}
}
