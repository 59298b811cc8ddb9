package fetch

import (
	"context"
	"errors"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/store"
)

// Google's own robots tests, as the module of the parser ships them: every
// assertion whose arguments are known without running it.
func TestRobotsConformance(t *testing.T) {
	cases, other := googleCases(t)
	passed := 0
	for _, c := range cases {
		if got := allows([]byte(c.robots), c.agent, c.url); got != c.allowed {
			t.Errorf("line %d: agent %q, %q: allowed %v, want %v; robots\n%s", c.line, c.agent, c.url, got, c.allowed, c.robots)
			continue
		}
		passed++
	}
	t.Logf("Google's robots tests: %d of %d pass; %d more have arguments that are built as the test runs", passed, len(cases), other)
	if len(cases) < 100 {
		t.Error("too few: is it the right file?")
	}
}

// googleCase is one assertion of Google's tests.
type googleCase struct {
	line               int
	robots, agent, url string
	allowed            bool
}

// googleCases reads the source of the tests: EXPECT_TRUE and EXPECT_FALSE of
// IsUserAgentAllowed. other counts those whose arguments are no constants.
func googleCases(t *testing.T) (cases []googleCase, other int) {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/jimsmart/grobotstxt").Output()
	if err != nil {
		t.Skipf("go list finds no source of grobotstxt: its tests were NOT run: %v", err)
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, filepath.Join(strings.TrimSpace(string(out)), "robots_test.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	// What it imports is not there, and no constant needs it. A variable that is
	// set once counts as one.
	info := types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	nothing := errors.New("no imports")
	conf := types.Config{Error: func(error) {}, Importer: importerFunc(func(string) (*types.Package, error) { return nil, nothing })}
	_, _ = conf.Check("robots", fset, []*ast.File{file}, &info) // its errors are those of the imports
	once := map[types.Object]constant.Value{}
	ast.Inspect(file, func(n ast.Node) bool {
		set, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for i, left := range set.Lhs {
			id, ok := left.(*ast.Ident)
			switch {
			case !ok:
			case set.Tok == token.DEFINE && i < len(set.Rhs):
				once[info.Defs[id]] = info.Types[set.Rhs[i]].Value
			default:
				delete(once, info.Uses[id])
			}
		}
		return true
	})
	value := func(e ast.Expr) constant.Value {
		if id, ok := e.(*ast.Ident); ok && once[info.Uses[id]] != nil {
			return once[info.Uses[id]]
		}
		return info.Types[e].Value
	}
	ast.Inspect(file, func(n ast.Node) bool {
		expect, ok := n.(*ast.CallExpr)
		if !ok || len(expect.Args) != 1 || name(expect.Fun) != "EXPECT_TRUE" && name(expect.Fun) != "EXPECT_FALSE" {
			return true
		}
		call, ok := expect.Args[0].(*ast.CallExpr)
		if !ok || len(call.Args) != 3 || name(call.Fun) != "IsUserAgentAllowed" {
			return true // of several agents at once, or of the parser's own
		}
		var text [3]string
		for i, arg := range call.Args {
			v := value(arg)
			if v == nil || v.Kind() != constant.String {
				other++
				return true
			}
			text[i] = constant.StringVal(v)
		}
		cases = append(cases, googleCase{fset.Position(call.Pos()).Line, text[0], text[1], text[2], name(expect.Fun) == "EXPECT_TRUE"})
		return true
	})
	return cases, other
}

func name(e ast.Expr) string {
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

type importerFunc func(string) (*types.Package, error)

func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }

func free(context.Context) error { return nil }

func TestRobotsAnswers(t *testing.T) {
	big := "user-agent: *\n" + strings.Repeat("# padding\n", 51_300) + "disallow: /private\n" // cut inside the padding
	tests := []struct {
		name    string
		handler http.HandlerFunc
		status  int
		page    string
		allowed bool
	}{
		{"rules", write(200, "User-agent: echo-node\nDisallow: /a\nUser-agent: *\nDisallow: /"), 200, "/b", true},
		{"own group", write(200, "User-agent: echo-node\nDisallow: /a\nUser-agent: *\nDisallow: /b"), 200, "/a", false},
		{"group for all", write(200, "User-agent: *\nDisallow: /a"), 200, "/a/b", false},
		{"not found", write(404, "User-agent: *\nDisallow: /"), 404, "/a", true},
		{"forbidden", write(403, ""), 403, "/a", true},
		{"too many", write(429, ""), 429, "/a", false},
		{"broken", write(500, "User-agent: *\nAllow: /"), 500, "/a", false},
		{"large", write(200, big), 200, "/private", true},
		{"five redirects", redirects(5), 200, "/a", false},
		{"six redirects", redirects(6), 302, "/a", true},
		{"nowhere", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(301) }, 301, "/a", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			gates := 0
			url := server(t, tt.handler)
			now := time.Now()
			rob, used, why, err := client(t, Options{}).Robots(t.Context(), url, now, func(context.Context) error { gates++; return nil })
			if err != nil || rob.Status != tt.status || (why != nil) != Unreachable(rob) {
				t.Fatalf("status %d, why %v, err %v", rob.Status, why, err)
			}
			if got := Allowed(rob, url+tt.page); got != tt.allowed {
				t.Errorf("%s allowed: %v", tt.page, got)
			}
			if gates != used.Reqs || gates == 0 || used.Bytes == 0 || len(rob.Body) > maxRobotsBody || rob.Expires.Sub(now) != 24*time.Hour {
				t.Errorf("%d gates, %+v, %d bytes kept till %v", gates, used, len(rob.Body), rob.Expires)
			}
		})
	}
	t.Run("no answer", func(t *testing.T) {
		rob, _, why, err := client(t, Options{}).Robots(t.Context(), "http://127.0.0.1:1", time.Now(), free)
		if err != nil || why == nil || rob.Status != 0 || Allowed(rob, "http://127.0.0.1:1/") {
			t.Errorf("%+v %v %v", rob, why, err)
		}
	})
	t.Run("gate shut", func(t *testing.T) {
		shut := errors.New("shut")
		if _, used, _, err := client(t, Options{}).Robots(t.Context(), "http://127.0.0.1:1", time.Now(), func(context.Context) error { return shut }); err != shut || used.Reqs != 0 {
			t.Error(err, used)
		}
	})
}

func write(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		w.Write([]byte(body))
	}
}

func redirects(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		hop := strings.Count(r.URL.Path, "z")
		if hop < n {
			http.Redirect(w, r, "/robots"+strings.Repeat("z", hop+1), http.StatusFound)
			return
		}
		w.Write([]byte("user-agent: *\ndisallow: /"))
	}
}

func TestCrawlDelay(t *testing.T) {
	tests := []struct {
		robots string
		want   time.Duration
		ok     bool
	}{
		{"user-agent: *\ncrawl-delay: 10", 10 * time.Second, true},
		{"user-agent: *\ncrawl-delay: 0.5\ndisallow: /x", 500 * time.Millisecond, true},
		{"user-agent: *\ncrawl-delay: 10\n\nuser-agent: Echo-Node\ncrawl-delay: 2", 2 * time.Second, true},
		{"user-agent: *\ncrawl-delay: 10\n\nuser-agent: echo-node\ndisallow: /x", 0, false},
		{"user-agent: other\nuser-agent: echo-node/1.0\ncrawl-delay: 3", 3 * time.Second, true},
		{"user-agent: echo-node\ndisallow: /x\nuser-agent: other\ncrawl-delay: 3", 0, false},
		{"user-agent: other\ncrawl-delay: 3", 0, false},
		{"crawl-delay: 3", 0, false},
		{"user-agent: *\ncrawl-delay: -3\n", 0, false},
		{"user-agent: *\ncrawl-delay: NaN\n", 0, false},
		{"user-agent: *\ncrawl-delay: soon\n", 0, false},
		{"user-agent: *\ncrawl-delay: 1e300\n", 365 * 24 * time.Hour, true},
	}
	for _, tt := range tests {
		if d, ok := CrawlDelay(store.Robots{Status: 200, Body: []byte(tt.robots)}); d != tt.want || ok != tt.ok {
			t.Errorf("%q: %v %v, want %v %v", tt.robots, d, ok, tt.want, tt.ok)
		}
	}
}

func FuzzRobots(f *testing.F) {
	f.Add([]byte("user-agent: *\ndisallow: /a*b$\ncrawl-delay: 3\nsitemap: x"), "http://a/b")
	f.Add([]byte("\xef\xbb\xbfuser-agent echo-node\nallow /%e3%81\x00\r\r\n"), "http://a/%")
	f.Fuzz(func(t *testing.T, body []byte, url string) {
		rob := store.Robots{Status: 200, Body: body}
		first := Allowed(rob, url)
		if Allowed(rob, url) != first {
			t.Fatal("two answers for one question")
		}
		if d, ok := CrawlDelay(rob); d < 0 || !ok && d != 0 {
			t.Fatal(d, ok)
		}
	})
}
