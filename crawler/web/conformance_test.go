package web

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html/charset"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// module returns the directory of a module in the build. Its test data is there.
func module(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", path).Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		t.Skipf("go list finds no source of %s: its tests were NOT run: %v", path, err)
	}
	return dir
}

// The W3C test pages for character sets, as golang.org/x/net ships them: each page decodes with its
// set, whatever place declares the set.
func TestCharsetConformance(t *testing.T) {
	dir := filepath.Join(module(t, "golang.org/x/net"), "html", "charset", "testdata")
	passed := 0
	cases := []struct{ file, contentType, set string }{
		{"HTTP-charset.html", "text/html; charset=iso-8859-15", "iso-8859-15"},
		{"UTF-16LE-BOM.html", "", "utf-16le"},
		{"UTF-16BE-BOM.html", "", "utf-16be"},
		{"meta-content-attribute.html", "text/html", "iso-8859-15"},
		{"meta-charset-attribute.html", "text/html", "iso-8859-15"},
		{"No-encoding-declaration.html", "text/html", "utf-8"},
		{"HTTP-vs-UTF-8-BOM.html", "text/html; charset=iso-8859-15", "utf-8"},
		{"HTTP-vs-meta-content.html", "text/html; charset=iso-8859-15", "iso-8859-15"},
		{"HTTP-vs-meta-charset.html", "text/html; charset=iso-8859-15", "iso-8859-15"},
		{"UTF-8-BOM-vs-meta-content.html", "text/html", "utf-8"},
		{"UTF-8-BOM-vs-meta-charset.html", "text/html", "utf-8"},
	}
	for _, c := range cases {
		body, err := os.ReadFile(filepath.Join(dir, c.file))
		if err != nil {
			t.Fatal(err)
		}
		e, _ := charset.Lookup(c.set)
		want, err := e.NewDecoder().Bytes(body)
		if err != nil {
			t.Fatal(err)
		}
		if got := decoded(t, body, c.contentType); got != strings.TrimPrefix(string(want), "\uFEFF") {
			t.Errorf("%s: not read as %s", c.file, c.set)
			continue
		}
		passed++
	}
	t.Logf("character sets: %d of %d pages pass", passed, len(cases))
}

// The test feeds of gofeed: title and item links are those of the expected results beside the
// feeds.
func TestFeedConformance(t *testing.T) {
	dir := filepath.Join(module(t, "github.com/mmcdole/gofeed"), "testdata", "parser")
	passed, all := 0, 0
	for _, kind := range []string{"rss", "atom"} {
		files, err := filepath.Glob(filepath.Join(dir, kind, "*.xml"))
		if err != nil || len(files) < 100 {
			t.Fatalf("%d feeds of %s, %v", len(files), kind, err)
		}
		for _, file := range files {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := os.ReadFile(strings.TrimSuffix(file, ".xml") + ".json")
			if err != nil {
				continue // no expected result beside it
			}
			all++
			if why := checkFeed(t, body, answer); why != "" {
				t.Errorf("%s/%s: %s", kind, filepath.Base(file), why)
				continue
			}
			passed++
		}
	}
	t.Logf("feeds: %d of %d pass", passed, all)
}

func checkFeed(t *testing.T, body, answer []byte) (fault string) {
	t.Helper()
	var want struct {
		Title string
		Items []struct{ Link string }
	}
	if err := json.Unmarshal(answer, &want); err != nil {
		return "" // not a feed: an error is expected, and only a panic would be wrong
	}
	in := read(string(body))
	in.mediaType = "application/xml"
	p, err := extractXML(in)
	if err != nil {
		return err.Error()
	}
	title := prose{max: maxTitle}
	title.add(strings.ToValidUTF8(want.Title, "\uFFFD"))
	if p.title != title.text() {
		return "title " + p.title + ", want " + title.text()
	}
	base, err := partition.NewBase(in.url)
	if err != nil {
		return err.Error()
	}
	for _, it := range want.Items {
		k, err := base.Resolve(it.Link)
		if it.Link == "" || err != nil {
			continue
		}
		found := slices.ContainsFunc(p.links, func(l store.Link) bool { return l.Key == k })
		if !found && k.URL() != in.url {
			return "no link to " + string(k)
		}
	}
	return ""
}
