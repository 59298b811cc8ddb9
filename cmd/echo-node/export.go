package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/echo-node/echo-node/node/api"
	"github.com/echo-node/echo-node/store"
)

type exportCmd struct {
	client
	filter
	Format string `default:"jsonl" enum:"jsonl,csv,warc" help:"Format: ${enum}. csv has a row for each record or post; with --kind edges, a row for each account in a list. warc is version 1.1, one gzip member for each record."`
	Out    string `short:"o" placeholder:"FILE" help:"Write to this file. If it holds an export that was interrupted, continue that one. Default: standard output."`
	Local  bool   `help:"Only the records of the peer that is asked."`
	Cursor string `help:"Continue after this cursor. An export to standard output that is interrupted prints it on standard error."`
}

// Help returns the text below the usage.
func (exportCmd) Help() string {
	return `Examples:
  echo-node export -o pages.jsonl --kind page
  echo-node export -o pages.warc.gz --format warc

Run the same command again to continue an interrupted export to a file.
Exit 3: written, but part of the swarm did not answer; standard error names it.`
}

// Run writes records in the requested format.
func (c *exportCmd) Run(ctx context.Context, p *program) error {
	e := api.Export{Kind: c.Kind, Lang: c.Lang, Site: c.Site, Facets: c.facets(), Cursor: c.Cursor, Local: c.Local,
		Captures: c.Format == "warc"}
	var err error
	if e.Since, e.Until, err = c.times(); err != nil {
		return err
	}
	cl, err := c.dial()
	if err != nil {
		return err
	}
	out := io.Writer(p.stdout)
	var marks *exportMarks
	if c.Out != "" {
		if c.Cursor != "" {
			return usage("--cursor is for standard output; -o FILE knows where it stopped")
		}
		if marks, err = openExport(c.Out, c.query(e)); err != nil {
			return err
		}
		defer marks.Close()
		e.Cursor, out = marks.cursor, marks
	}
	w := bufio.NewWriterSize(out, 1<<20)
	form := c.form(w, e)
	begin, err := form.start(e.Cursor, marks)
	if err != nil {
		return fmt.Errorf("export: %s: %w", c.Out, err)
	}
	count, cursor := 0, e.Cursor
	missing, err := cl.Export(ctx, e, func(rec store.Record, cur string) error {
		if err := begin(); err != nil {
			return err
		}
		if err := form.record(rec); err != nil {
			return err
		}
		count++
		cursor = cur
		if marks != nil && count%1000 == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
			return marks.mark(cur)
		}
		return nil
	})
	if err == nil {
		err = begin()
	}
	if ferr := w.Flush(); ferr != nil { // it is not known what was written: the last mark counts
		return fmt.Errorf("export: %w", errors.Join(err, ferr))
	}
	if marks != nil && (err == nil || count > 0) {
		if merr := marks.mark(cursor); err == nil {
			err = merr
		}
	}
	if err != nil {
		return fmt.Errorf("export: stopped after %d records: %w; %s", count, err, c.hint(cursor))
	}
	// what is missing lies before the end: the next export starts from the beginning
	if marks != nil {
		if err := marks.done(); err != nil {
			return fmt.Errorf("export: %w", err)
		}
	}
	for _, m := range missing {
		say(p.stderr, "missing: %d slices of %s: %s\n", m.Slices, m.Peer, m.Reason)
	}
	if len(missing) > 0 {
		return &incompleteError{errShortExport}
	}
	return nil
}

// hint says how to continue an export that stopped at cursor.
func (c *exportCmd) hint(cursor string) string {
	switch {
	case c.Out != "":
		return "the same command again continues it"
	case cursor == "":
		return "run the same command again: nothing was written that it could continue after"
	}
	return fmt.Sprintf("to continue, add --cursor '%s' to the same command and append what it prints", cursor)
}

// query identifies the export, for the note next to its file.
func (c *exportCmd) query(e api.Export) string {
	v := e.Values()
	if c.Format != "jsonl" {
		v.Set("format", c.Format)
	}
	return v.Encode()
}

// exportMarks is an output file with a note next to it (FILE.cursor: cursor and length), which
// says how far the file is complete. After a crash the file is cut to the noted length, and the
// export continues after the noted cursor. A finished export removes its note, so the next one
// starts from the beginning.
type exportMarks struct {
	f      *os.File
	note   string
	query  string
	cursor string
	from   int64 // the file is complete up to here
	ready  bool  // what was after from is removed
}

type exportNote struct {
	Cursor string `json:"cursor"`
	Length int64  `json:"length"`
	Query  string `json:"query"` // filters and format: another export does not continue this one
}

func openExport(name, query string) (*exportMarks, error) {
	m := &exportMarks{note: name + ".cursor", query: query}
	var n exportNote
	b, err := os.ReadFile(m.note)
	if err == nil {
		err = json.Unmarshal(b, &n)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("export: %s: %w; remove it to start the export again", m.note, err)
	}
	if err == nil && n.Query != query {
		return nil, usage("%s belongs to an export with other filters or another format (%s); remove it to start again",
			m.note, n.Query)
	}
	if m.f, err = os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	st, err := m.f.Stat()
	if err == nil && st.Size() < n.Length {
		err = fmt.Errorf("%s is shorter than %s says; remove both to start again", name, m.note)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("export: %w", err), m.f.Close())
	}
	m.cursor, m.from = n.Cursor, n.Length
	return m, nil
}

// cut cuts the file back to its complete part, once there is something to write. So an export
// that cannot begin leaves the previous one unchanged.
func (m *exportMarks) cut() error {
	if m.ready {
		return nil
	}
	if err := m.f.Truncate(m.from); err != nil {
		return err
	}
	_, err := m.f.Seek(m.from, io.SeekStart)
	m.ready = err == nil
	return err
}

func (m *exportMarks) Write(b []byte) (int, error) {
	if err := m.cut(); err != nil {
		return 0, err
	}
	return m.f.Write(b)
}

// mark notes that the file is complete up to here. It syncs the data before the note, so a
// crash between them only repeats work.
func (m *exportMarks) mark(cursor string) error {
	if err := m.cut(); err != nil {
		return err
	}
	if err := m.f.Sync(); err != nil {
		return err
	}
	at, err := m.f.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	b, err := json.Marshal(exportNote{cursor, at, m.query})
	if err != nil {
		return err
	}
	if err := os.WriteFile(m.note+".tmp", b, 0o644); err != nil {
		return err
	}
	return os.Rename(m.note+".tmp", m.note)
}

func (m *exportMarks) done() error { return os.Remove(m.note) }

// Close closes the file; mark has synced what counts.
func (m *exportMarks) Close() error { return m.f.Close() }
