package echonode

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Modules that nobody keeps any more may be measured against, but no peer runs them
// (docs/decisions/0011-whatlanggo.md).
func TestTheProductLinksNoUnkeptModules(t *testing.T) {
	unkept := []string{"github.com/abadojack/whatlanggo"}
	for _, s := range read(t, os.DirFS(".")) {
		if s.test || strings.HasPrefix(s.dir(), "cmd/echo-bench") {
			continue
		}
		for _, imp := range s.file.Imports {
			if path := strings.Trim(imp.Path.Value, `"`); slices.Contains(unkept, path) {
				t.Errorf("%s: imports %s, which nobody keeps", s.pos(imp), path)
			}
		}
	}
}
