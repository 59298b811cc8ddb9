package db

import (
	"strings"
	"testing"

	"github.com/echo-node/echo-node/store/format"
)

// A time may be readable from JSON but impossible to write as JSON. A row of another peer with such
// a time is a bad row: each answer and each export with it would be an error.
func TestRowsWithTimesThatCannotBeWritten(t *testing.T) {
	for name, c := range map[string]struct {
		row   string // TIME is the place of the time
		parse func([]byte) error
	}{
		"record": {`{"v":1,"fetched_at":"TIME"}`, func(b []byte) error { _, err := format.ParseRecord(b); return err }},
		"link": {`{"v":1,"links":[{"key":"web:http://a.test/","lastmod":"TIME"}]}`,
			func(b []byte) error { _, err := format.ParseRecord(b); return err }},
		"post": {`{"record":{"v":1,"published_at":"TIME"}}`,
			func(b []byte) error { _, err := format.ParsePost(b); return err }},
		"site":     {`{"NextAllowed":"TIME"}`, func(b []byte) error { _, err := format.ParseSite(b); return err }},
		"gap":      {`{"from":"TIME"}`, func(b []byte) error { _, err := format.ParseGap(b); return err }},
		"override": {`{"at":"TIME"}`, func(b []byte) error { _, err := format.ParseOverride(b); return err }},
	} {
		for _, at := range []string{"2026-01-02T03:04:05-24:59", "9999-12-31T23:59:59-23:59"} {
			if err := c.parse([]byte(strings.ReplaceAll(c.row, "TIME", at))); err == nil ||
				!strings.Contains(err.Error(), "cannot be written") {
				t.Errorf("%s at %s: %v", name, at, err)
			}
		}
	}
}
