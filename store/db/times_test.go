package db

import (
	"strings"
	"testing"

	"github.com/echo-node/echo-node/store/format"
)

// A row of another peer with a time that JSON can be read from, and not written to, is a bad row: it would make each
// answer and each export that it is part of an error.
func TestRowsWithTimesThatCannotBeWritten(t *testing.T) {
	for name, c := range map[string]struct {
		row   string // TIME is where the time stands
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
