package main

import (
	"log"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

const (
	maxStdLine   = 200 // bytes of a line of the standard logger that are kept
	stdLineEvery = 10 * time.Second
	stdLineBurst = 10
)

// stdLog is where the standard logger writes. net/http says there what servers do wrong, in their words and as often as
// they do it: a line for every frame of HTTP/2 that it does not know.
type stdLog struct {
	to    *slog.Logger
	limit *rate.Limiter
}

// bindStdLog gives the lines of the standard logger to l, short and few.
func bindStdLog(l *slog.Logger) {
	log.SetFlags(0)
	log.SetOutput(newStdLog(l))
}

func newStdLog(l *slog.Logger) *stdLog {
	return &stdLog{l, rate.NewLimiter(rate.Every(stdLineEvery), stdLineBurst)}
}

// Write is of io.Writer. What is over the limit is dropped.
func (s *stdLog) Write(p []byte) (int, error) {
	if s.limit.Allow() {
		line := p[:min(len(p), maxStdLine)]
		s.to.Debug("of a library", "text", strings.ToValidUTF8(strings.TrimSpace(string(line)), "\uFFFD"))
	}
	return len(p), nil
}
