package safetext

import (
	"io"
	"sync"
	"unicode/utf8"
)

// Writer cleans what is written to it and passes it on. It is safe for concurrent use. Each
// Write of the caller becomes one Write of the underlying writer, so lines of a log stay whole.
type Writer struct {
	mu   sync.Mutex
	to   io.Writer
	rest []byte // the beginning of a character whose other bytes come with the next Write
	json bool
}

// NewWriter returns a Writer that cleans like Text.
func NewWriter(w io.Writer) *Writer { return &Writer{to: w} }

// NewJSONWriter returns a Writer that escapes like JSON. The caller may write only JSON text.
func NewJSONWriter(w io.Writer) *Writer { return &Writer{to: w, json: true} }

// Write returns len(b) when all of b was passed on or is kept for the next Write. With an error
// it returns 0.
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

// Close writes an unfinished character: bytes that are no character. It does not close the
// underlying writer.
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

// Unwrap returns the underlying writer, which knows whether it is a terminal.
func (w *Writer) Unwrap() io.Writer { return w.to }

// unfinished returns how many bytes at the end of b begin an incomplete character.
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
