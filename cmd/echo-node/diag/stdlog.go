package diag

import (
	"log"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

const (
	maxStdLine   = 200 // bytes that are kept of a line of the standard logger
	stdLineEvery = 10 * time.Second
	stdLineBurst = 10
)

// stdLog is the output of the standard logger. net/http logs there the errors of servers, in
// the servers' words and for each occurrence: one line for every unknown HTTP/2 frame.
type stdLog struct {
	to    *slog.Logger
	limit *rate.Limiter
}

// BindStdLog sends the lines of the standard logger to l, shortened and limited in number.
func BindStdLog(l *slog.Logger) {
	log.SetFlags(0)
	log.SetOutput(newStdLog(l))
}

func newStdLog(l *slog.Logger) *stdLog {
	return &stdLog{l, rate.NewLimiter(rate.Every(stdLineEvery), stdLineBurst)}
}

// Write implements io.Writer. It drops lines above the limit.
func (s *stdLog) Write(p []byte) (int, error) {
	if s.limit.Allow() {
		line := p[:min(len(p), maxStdLine)]
		s.to.Debug("of a library", "text", strings.ToValidUTF8(strings.TrimSpace(string(line)), "\uFFFD"))
	}
	return len(p), nil
}
