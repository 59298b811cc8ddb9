package echonode

import (
	"os/exec"
	"strings"
	"testing"
)

// forbidden is what no program that a volunteer runs may link: modules that nobody keeps
// (docs/decisions/0011-whatlanggo.md), rivals of the benches, readers that only tests use,
// the frameworks of tests, and the laboratory.
func forbidden() []string {
	return []string{
		"github.com/gocolly/colly", "github.com/nlnwa/gowarc", "github.com/PuerkitoBio/goquery",
		"github.com/temoto/robotstxt", "github.com/jimsmart/grobotstxt", "github.com/abadojack/whatlanggo",
		"pgregory.net/rapid", "go.uber.org/goleak", "github.com/google/go-cmp",
		"github.com/rogpeppe/go-internal/testscript",
		"net/http/httptest", "net/http/pprof",
		module + "/cmd/echo-lab", // what redoes the papers' measurements
	}
}

func TestWhatTheProductLinks(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "./cmd/echo-node").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	deps := strings.Fields(string(out))
	if len(deps) < 100 {
		t.Fatalf("only %d packages: %s", len(deps), out)
	}
	for _, fault := range linkFaults(deps, forbidden()) {
		t.Error(fault)
	}
	if len(linkFaults([]string{"a/b/v2/c", "ab", "a/bc", "testing"}, []string{"a/b", "testing"})) != 2 {
		t.Error("a package that must not be linked is not seen")
	}
}

// linkFaults are the packages of deps that are, or are below, one of never.
func linkFaults(deps, never []string) (faults []string) {
	for _, dep := range deps {
		for _, name := range never {
			if dep == name || strings.HasPrefix(dep, name+"/") {
				faults = append(faults, "cmd/echo-node links "+dep)
			}
		}
	}
	return faults
}
