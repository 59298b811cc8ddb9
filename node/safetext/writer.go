package safetext

import (
	"io"
	"sync"
	"unicode/utf8"
)

// Writer passes on what is written to it, cleaned. It is safe for concurrent use:
// one Write of the caller is one Write of what is below, so that lines of a log stay
// whole.
type Writer struct {
	mu   sync.Mutex
	to   io.Writer
	rest []byte // the begin of a character whose other bytes come with the next Write
	json bool
}

// NewWriter cleans as Text does.
func NewWriter(w io.Writer) *Writer { return &Writer{to: w} }

// NewJSONWriter escapes as JSON does; only JSON text may be written to it.
func NewJSONWriter(w io.Writer) *Writer { return &Writer{to: w, json: true} }

// Write answers len(b) when all of it was passed on or is kept for the next Write, and
// 0 with an error.
func (w *Writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := b
	if len(w.rest) > 0 {
		all = append(w.rest, b...)
	}
	whole := len(all) - unfinished(all)
	var out []byte
	if w.json {
		out = JSON(all[:whole])
	} else {
		out = textBytes(all[:whole])
	}
	if len(out) > 0 {
		if _, err := w.to.Write(out); err != nil {
			return 0, err
		}
	}
	w.rest = append([]byte(nil), all[whole:]...)
	return len(b), nil
}

// Close writes what was never finished: bytes that are no character. It does not close
// what is below.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := textBytes(w.rest)
	if w.json {
		out = JSON(w.rest)
	}
	w.rest = nil
	if len(out) == 0 {
		return nil
	}
	_, err := w.to.Write(out)
	return err
}

// Unwrap is what is below: it knows whether it is a terminal.
func (w *Writer) Unwrap() io.Writer { return w.to }

// unfinished is how many bytes at the end of b begin a character that is not whole.
func unfinished(b []byte) int {
	for n := 1; n <= min(utf8.UTFMax-1, len(b)); n++ {
		if at := b[len(b)-n:]; utf8.RuneStart(at[0]) {
			if at[0] >= utf8.RuneSelf && !utf8.FullRune(at) {
				return n
			}
			return 0
		}
	}
	return 0
}
