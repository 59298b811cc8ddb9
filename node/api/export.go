package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/echo-node/echo-node/node/safetext"
	"github.com/echo-node/echo-node/store"
)

const (
	trailerCursor  = "Echo-Cursor"
	trailerMissing = "Echo-Missing"
	mediaJSONL     = "application/jsonl"
)

// exportLine is one line of an export: the record, and the cursor to continue after it.
type exportLine struct {
	store.Record
	Cursor string `json:"cursor"`
}

func (s *Server) exportRoute() {
	op := operation(http.MethodGet, "export", "Stream records as JSON lines")
	op.Description = "Each line is a record with its cursor; trailers Echo-Cursor and Echo-Missing end a whole export."
	schema := s.api.OpenAPI().Components.Schemas.Schema(typeOf[exportLine](), true, "")
	op.Responses = map[string]*huma.Response{"200": {
		Description: "JSON lines",
		Content:     map[string]*huma.MediaType{mediaJSONL: {Schema: schema}},
	}}
	huma.Register(s.api, op, func(_ context.Context, in *exportParams) (*huma.StreamResponse, error) {
		e, err := in.export()
		if err != nil {
			return nil, err
		}
		return &huma.StreamResponse{Body: func(ctx huma.Context) {
			r, w := humago.Unwrap(ctx)
			s.export(w, r, e)
		}}, nil
	})
}

// export streams records. It sends nothing before the first record, so an earlier error becomes
// a proper problem. After a later error it sends what is buffered and cuts the connection.
func (s *Server) export(w http.ResponseWriter, r *http.Request, e Export) {
	select {
	case s.exports <- struct{}{}:
		defer func() { <-s.exports }()
	default:
		w.Header().Set("Retry-After", "5")
		writeProblem(w, r, http.StatusServiceUnavailable, fmt.Sprintf("%d exports are running; try again later",
			maxExports))
		return
	}
	x := &exporter{w: w, control: http.NewResponseController(w), stall: s.stall, last: e.Cursor}
	x.buffer = bufio.NewWriterSize(stallWriter{x}, 64<<10)
	// net/http ends the request's context when the read deadline passes.
	err := x.control.SetReadDeadline(time.Time{})
	if errors.Is(err, http.ErrNotSupported) {
		err = nil
	}
	var missing []Missing
	if err == nil {
		missing, err = s.peer.Export(r.Context(), e, x.line)
	}
	if err == nil {
		err = x.end(missing)
	}
	switch {
	case err == nil:
	case !x.begun:
		p := problemOf(s.problem(r.Context(), "export", err))
		writeProblem(w, r, p.GetStatus(), p.Error())
	default:
		if r.Context().Err() == nil && !errors.Is(err, errReader) {
			s.log.Error("api export broke off", "request", requestID(r.Context()), "err", err)
			_ = x.flush() // the reader continues after what it got; the connection is cut anyway
		}
		// no trailers, no last chunk: the reader sees that the export is incomplete
		panic(http.ErrAbortHandler)
	}
}

// errReader means that the client reads no more.
var errReader = errors.New("the reader is gone or too slow")

type exporter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buffer  *bufio.Writer
	stall   time.Duration
	last    string // cursor of the last line
	begun   bool
	flushed time.Time
}

func (x *exporter) begin() {
	if x.begun {
		return
	}
	x.begun = true
	h := x.w.Header()
	h.Set("Content-Type", mediaJSONL)
	h.Set("Trailer", trailerCursor+", "+trailerMissing)
	x.w.WriteHeader(http.StatusOK)
	x.flushed = time.Now()
}

// line writes one record. The buffer is sent when it is full or a second old.
func (x *exporter) line(rec store.Record, cursor string) error {
	var b bytes.Buffer // no HTML escapes: they could make the line longer than a reader accepts
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(exportLine{rec, cursor}); err != nil {
		return fmt.Errorf("export %s: %w", rec.Key, err)
	}
	x.begin()
	if _, err := x.buffer.Write(safetext.JSON(b.Bytes())); err != nil {
		return err
	}
	x.last = cursor
	if time.Since(x.flushed) > time.Second {
		return x.flush()
	}
	return nil
}

func (x *exporter) flush() error {
	x.flushed = time.Now()
	if err := x.buffer.Flush(); err != nil {
		return err
	}
	if err := x.control.Flush(); err != nil {
		return fmt.Errorf("%w: %w", errReader, err)
	}
	return nil
}

func (x *exporter) end(missing []Missing) error {
	text, err := missingText(missing)
	if err != nil {
		return err
	}
	x.begin()
	if err := x.flush(); err != nil {
		return err
	}
	x.w.Header().Set(trailerCursor, ascii(x.last))
	x.w.Header().Set(trailerMissing, text)
	return nil
}

// missingText returns missing as a JSON list for a header. If it is too long, one entry that
// counts the peers replaces them.
func missingText(missing []Missing) (string, error) {
	b, err := json.Marshal(list(missing))
	if err != nil {
		return "", fmt.Errorf("export: %w", err)
	}
	if len(b) > maxMissingText {
		all := Missing{Peer: "*", Reason: fmt.Sprintf("%d peers did not answer", len(missing))}
		for _, m := range missing {
			all.Slices += m.Slices
		}
		if b, err = json.Marshal([]Missing{all}); err != nil {
			return "", fmt.Errorf("export: %w", err)
		}
	}
	return ascii(string(b)), nil
}

// ascii returns JSON text in which everything that is not ASCII is escaped, for a header.
func ascii(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < ' ' || r == 0x7f: // cannot occur in JSON text
		case r < 0x80:
			b.WriteRune(r)
		default:
			for _, u := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, u)
			}
		}
	}
	return b.String()
}

// stallWriter sets a deadline for each write. An export may take hours, but a reader that stops
// reading is cut off.
type stallWriter struct{ x *exporter }

func (s stallWriter) Write(b []byte) (int, error) {
	err := s.x.control.SetWriteDeadline(time.Now().Add(s.x.stall))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, fmt.Errorf("%w: %w", errReader, err)
	}
	n, err := s.x.w.Write(b)
	if err != nil {
		return n, fmt.Errorf("%w: %w", errReader, err)
	}
	return n, nil
}
