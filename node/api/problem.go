package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/echo-node/echo-node/node/safetext"
)

// problemOf converts err into a problem. An error that is a problem already stays as it is.
func problemOf(err error) huma.StatusError {
	var known huma.StatusError
	if errors.As(err, &known) {
		return known
	}
	status := http.StatusInternalServerError
	switch {
	case errors.Is(err, ErrInvalid):
		status = http.StatusUnprocessableEntity
	case errors.Is(err, ErrNotFound):
		status = http.StatusNotFound
	case errors.Is(err, ErrUnavailable):
		status = http.StatusServiceUnavailable
	case errors.Is(err, ErrNotBuilt):
		status = http.StatusNotImplemented
	case errors.Is(err, context.DeadlineExceeded):
		status = http.StatusGatewayTimeout
	case errors.Is(err, context.Canceled): // the client left, or the peer is closing
		status = http.StatusServiceUnavailable
	}
	return huma.NewError(status, err.Error())
}

// Explain returns the HTTP status and the text of err for a person. For nil it returns 200 and
// "".
func Explain(err error) (int, string) {
	if err == nil {
		return http.StatusOK, ""
	}
	p := problemOf(err)
	m := &Problem{Status: p.GetStatus(), Detail: p.Error()}
	var known *huma.ErrorModel
	if errors.As(p, &known) {
		for _, d := range known.Errors {
			m.Faults = append(m.Faults, Fault{Message: d.Message, Location: d.Location, Value: d.Value})
		}
	}
	return m.Status, m.Error()
}

// writeProblem responds to r outside huma's handlers, in the same form as inside them.
func writeProblem(w http.ResponseWriter, r *http.Request, status int, detail string) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Del("Content-Length")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	m := &huma.ErrorModel{Status: status, Title: http.StatusText(status), Detail: detail}
	complete(m, r.URL.Path, requestID(r.Context()))
	// The status is already sent. The only possible error is a reader that is gone.
	_ = marshal(w, m)
}

// complete fills the members of RFC 9457 that huma leaves empty.
func complete(m *huma.ErrorModel, path, id string) {
	if m.Type == "" {
		m.Type = "about:blank" // section 4.2.1: the title is that of the status
	}
	if m.Instance == "" {
		m.Instance = path + "#" + id
	}
	// Strangers wrote parts of this: reasons of peers, errors of servers, the request.
	m.Title, m.Detail, m.Instance = safetext.Line(m.Title), safetext.Line(m.Detail), safetext.Line(m.Instance)
	for _, d := range m.Errors {
		d.Message, d.Location = safetext.Line(d.Message), safetext.Line(d.Location)
		if v, ok := d.Value.(string); ok {
			d.Value = safetext.Line(v)
		}
	}
}

// marshal writes v as JSON that cannot control a terminal. What peers and pages wrote is
// escaped, not changed.
func marshal(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(safetext.JSON(b.Bytes()))
	return err
}

// problemTransformer calls complete as a hook of huma.
func problemTransformer(ctx huma.Context, _ string, v any) (any, error) {
	if m, ok := v.(*huma.ErrorModel); ok {
		u := ctx.URL()
		complete(m, u.Path, requestID(ctx.Context()))
	}
	return v, nil
}
