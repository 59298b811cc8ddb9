package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/echo-node/echo-node/store"
)

// ErrBroken is wrapped when an export was interrupted. Call Export again with the last cursor.
var ErrBroken = errors.New("the export broke off")

// Export calls fn for each record that matches e, with the cursor to continue after it. It
// returns the parts of the swarm that did not respond. An error of fn ends the export and is
// returned.
func (c *Client) Export(ctx context.Context, e Export, fn func(rec store.Record, cursor string) error) ([]Missing,
	error) {
	res, err := c.send(ctx, http.MethodGet, "/api/v1/export?"+e.Values().Encode(), nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	lines := bufio.NewReaderSize(res.Body, 64<<10)
	for {
		b, err := readLine(lines)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBroken, err)
		}
		var l exportLine
		if err := json.Unmarshal(b, &l); err != nil {
			return nil, fmt.Errorf("export: a line that is not a record: %w", err)
		}
		if err := fn(l.Record, l.Cursor); err != nil {
			return nil, err
		}
	}
	// Trailers are set once the body has been read to its end.
	var missing []Missing
	if err := json.Unmarshal([]byte(res.Trailer.Get(trailerMissing)), &missing); err != nil {
		return nil, fmt.Errorf("%w: no word at the end of what is missing: %w", ErrBroken, err)
	}
	return missing, nil
}

// readLine returns the next line without its line feed. It returns io.EOF only after a complete
// line.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case len(line) > maxExportLine:
			return nil, fmt.Errorf("a line longer than %d bytes", maxExportLine)
		case errors.Is(err, bufio.ErrBufferFull):
		case err == io.EOF && len(line) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}
