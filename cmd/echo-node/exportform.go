package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/node/safetext"
	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
	"github.com/echo-node/echo-node/store/warc"
)

// exportForm writes records in one format. After each call all its data is with its writer, so
// a file may be cut between any two calls.
type exportForm struct {
	begin  func() error          // once, at the beginning of a file
	resume func(io.Reader) error // otherwise: reads the file's content so far
	record func(store.Record) error
}

// start reads the file's content and returns the function to call before the first write. It is
// not called earlier, so an export that cannot begin leaves the file unchanged.
func (f exportForm) start(cursor string, marks *exportMarks) (begin func() error, err error) {
	if marks != nil && marks.from > 0 {
		return func() error { return nil }, f.resume(io.NewSectionReader(marks.f, 0, marks.from))
	}
	headed := cursor != ""
	return func() error {
		if headed {
			return nil
		}
		headed = true
		return f.begin()
	}, nil
}

func (c *exportCmd) form(w io.Writer, e api.Export) exportForm {
	switch c.Format {
	case "csv":
		if e.Kind == store.KindEdges {
			return edgesForm(w)
		}
		return csvForm(w)
	case "warc":
		out := warc.NewWriter(w)
		e.Captures = false // all records have them
		info := warc.Info{Software: "echo-node/" + versionText(), Made: time.Now(), Query: e.Values().Encode()}
		if c.Out != "" {
			info.Filename = filepath.Base(c.Out)
		}
		return exportForm{func() error { return out.Info(info) }, out.Resume, out.Record}
	}
	return exportForm{func() error { return nil }, func(io.Reader) error { return nil }, func(r store.Record) error {
		var line bytes.Buffer
		enc := json.NewEncoder(&line)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(r); err != nil {
			return err
		}
		_, err := w.Write(safetext.JSON(line.Bytes()))
		return err
	}}
}

// csvColumns returns the columns of a csv export in order. They are the fields of a record in
// JSON, with the same names. New columns are added only at the end, so those of the first
// version come first. Cells are the pages' text without control characters, and none is a
// formula for a spreadsheet: see safetext.Cell. Only JSON lines and WARC are exact.
func csvColumns() []string {
	columns := []string{"key", "kind", "url", "fetched_at", "source", "peer", "status", "digest", "media_type", "lang",
		"title", "description", "author",
		"published_at", "canonical", "redirect", "noindex", "links", "text", "post", "deleted"}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[store.Record]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" && !slices.Contains(columns, name) {
			columns = append(columns, name)
		}
	}
	return columns
}

// csvRow returns the columns of r. Texts, numbers and booleans are plain. Links are the Keys of
// the linked pages, separated by spaces. Structured values are JSON.
func csvRow(r store.Record, columns []string) ([]string, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return nil, err
	}
	row := make([]string, len(columns))
	for i, name := range columns {
		if row[i], err = csvCell(fields[name]); err != nil {
			return nil, err
		}
		switch name { // fields that JSON omits when they are false
		case "noindex":
			row[i] = strconv.FormatBool(r.NoIndex)
		case "deleted":
			row[i] = strconv.FormatBool(r.Deleted)
		case "links":
			links := make([]string, len(r.Links))
			for j, l := range r.Links {
				links[j] = string(l.Key)
			}
			row[i] = strings.Join(links, " ")
		}
	}
	return row, nil
}

// csvCell returns a field of a record without the quotes of JSON.
func csvCell(raw json.RawMessage) (text string, err error) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "", nil
	case raw[0] == '"':
		err = json.Unmarshal(raw, &text)
		return text, err
	}
	return string(raw), nil
}

// csvForm writes RFC 4180, except that line feeds in texts stay as they are.
func csvForm(w io.Writer) exportForm {
	out, columns := csv.NewWriter(w), csvColumns()
	row := func(cells []string) error {
		if err := out.Write(safeCells(cells)); err != nil {
			return err
		}
		out.Flush()
		return out.Error()
	}
	return exportForm{func() error { return row(slices.Clone(columns)) }, func(io.Reader) error { return nil },
		func(r store.Record) error {
			cells, err := csvRow(r, columns)
			if err != nil {
				return err
			}
			return row(cells)
		}}
}

// edgeColumns returns the columns for the edges of follower and following lists.
func edgeColumns() []string {
	return []string{"from", "to", "kind", "first_seen", "last_seen", "gone_at", "sure"}
}

// edgesForm writes one row for each account in a list and each period in which it was there.
// The follower is always in the column from, for either kind of list.
func edgesForm(w io.Writer) exportForm {
	f := csvForm(w)
	row := func(out *csv.Writer, r store.Record, e store.Edge, s store.Span) error {
		from, to := r.Key.Account(), e.To
		if r.Key.Kind() == partition.KindFollowers {
			from, to = to, from
		}
		gone := ""
		if !s.Gone.IsZero() {
			gone = s.Gone.UTC().Format(time.RFC3339Nano)
		}
		return out.Write(safeCells([]string{string(from), string(to), "follows", s.First.UTC().Format(time.RFC3339Nano),
			s.Last.UTC().Format(time.RFC3339Nano), gone, e.Sure}))
	}
	head := func() error { return csvLine(w, func(out *csv.Writer) error { return out.Write(edgeColumns()) }) }
	return exportForm{head, f.resume, func(r store.Record) error {
		return csvLine(w, func(out *csv.Writer) error {
			for _, e := range r.Edges {
				for _, s := range e.Times() {
					if err := row(out, r, e, s); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}}
}

// safeCells changes cells in place, so that no spreadsheet computes them and none controls a
// terminal.
func safeCells(cells []string) []string {
	for i, c := range cells {
		cells[i] = safetext.Cell(c)
	}
	return cells
}

func csvLine(w io.Writer, write func(*csv.Writer) error) error {
	out := csv.NewWriter(w)
	err := write(out)
	out.Flush()
	if err == nil {
		err = out.Error()
	}
	return err
}
