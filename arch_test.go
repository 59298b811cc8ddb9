// Package echonode holds only the tests that keep the architecture: the arrows
// between packages, one package comment for each, the size budget. None of
// them has an exceptions list, but tooLarge and largeTests, which may only shrink.
package echonode

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"
)

const module = "github.com/echo-node/echo-node"

// The budget, in lines that carry code: comments and blank lines are free. A file and a function
// of the program stay under it; those of tests may reach it.
const (
	maxFileCode     = 500
	maxFunctionCode = 80
)

// A line has at most maxColumns columns, a tab being four. A text that is longer than
// longText is not broken: neither a message nor a tag of a field can be searched for then.
const (
	maxColumns = 120
	longText   = 50
)

// The most methods of a type and lines of a package, tests and what is generated not counted.
const (
	maxMethods = 40
	maxPackage = 3000
)

// tooLarge are the types and packages that are still above these bounds, with what they
// may have at most: less each time, and none that is new (docs/decisions/0100-house.md).
func tooLarge() map[string]int {
	return map[string]int{
		"cmd/echo-node": 4340, "crawler": 3880, "crawler/judge/period": 3500, "crawler/web": 4460,

		"crawler/crawltest.World": 54, "node.Node": 87, "node/replica/quorum.Machine": 82,
		"store/index.Index": 47,
	}
}

// largeTests are the test files and, by their names, the functions of tests that are still above the
// budget, with what they may have at most. As with tooLarge, a number may only fall.
func largeTests() map[string]int {
	return map[string]int{
		"store/db/place_test.go": 649, "store/db/social_test.go": 607,

		"TestAPersonOverrulesTheJudge": 120, "TestASmallNetworkIsHadWhole": 101, "TestAccounts": 86,
		"TestApplyLogRefusesHostileChunks": 117, "TestBadPasses": 85, "TestBringRows": 90,
		"TestEachPeerListensForItsOwnAccounts": 106, "TestFilesAreWithdrawn": 85, "TestFilesOfAccountsAreHad": 172,
		"TestFilesOfAccountsInASwarm": 133, "TestFollowACommunity": 83, "TestFollowWithAToken": 85,
		"TestI8ScoresWhereverDocumentsAre": 85, "TestI8WhatIsNotKeptIsMissing": 83, "TestJetstream": 105,
		"TestJudgedPagesAreFound": 96, "TestListsOfTheTokensOwner": 90,
		"TestNothingIsMissedAndNothingReadTwice": 96, "TestOutcomes": 96, "TestPostsSurviveTheirOwner": 113,
		"TestProbe": 89, "TestProperties": 88, "TestRealSites": 118, "TestSearchesObeyTheProfileBesideEachPost": 82,
		"TestSeedsByNameEndInPosts": 110, "TestSnac": 108, "TestSnacIsFollowed": 115,
		"TestTheOperatorsTokenIsFound": 84, "TestTheWholeTruthIsRead": 85,
		"TestThreeProcessesAndAKill": 104, "TestValidateRequests": 107, "TestValidateResponses": 81,
		"TestEachRowThatIsWrittenIsNamed": 95, "audit": 118,
	}
}

// source is one Go file that people wrote.
type source struct {
	name string // slash-separated, from the root of the module
	text []byte
	fset *token.FileSet
	file *ast.File
	test bool
}

func (s source) dir() string { return path.Dir(s.name) }

// pos is where a node stands, for a message.
func (s source) pos(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.name, s.fset.Position(n.Pos()).Line)
}

// read parses every Go file of the module that is not generated.
func read(t *testing.T, root fs.FS) []source {
	t.Helper()
	var all []source
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
		if err != nil {
			return err
		}
		if !ast.IsGenerated(file) {
			all = append(all, source{name, text, fset, file, strings.HasSuffix(name, "_test.go")})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// above is which trees the production code of a tree may import; cmd may
// import any. Everything else follows from three rules: see arrowFaults.
func above(tree string) []string {
	return map[string][]string{
		"partition": nil,
		"store":     {"partition"},
		"dht":       {"partition"},
		"crawler":   {"partition", "store"},
		"node":      {"partition", "store", "dht", "crawler"},
		"cmd":       {"partition", "store", "dht", "crawler", "node"},
	}[tree]
}

// vocabulary says that pkg is the words of its children, which may import it;
// in return it may import none of them.
func vocabulary(pkg string) bool { return pkg == "partition" || pkg == "store" }

// lab says whether pkg belongs to what redoes the measurements of papers.
func lab(pkg string) bool {
	return pkg == "cmd/echo-lab" || strings.HasPrefix(pkg, "cmd/echo-lab/")
}

// arrowFault checks one import, both ends relative to the module.
func arrowFault(from, to string) string {
	tree, _, _ := strings.Cut(from, "/")
	other, _, _ := strings.Cut(to, "/")
	forTests := strings.HasSuffix(from, "test")
	switch {
	case strings.HasSuffix(to, "test") && tree != "cmd" && tree != "node" && !forTests:
		return "only the demo and the benches run on a world for tests"
	case above(tree) == nil && tree != "partition":
		return "a tree that docs/architecture.md does not know"
	case tree != other && !slices.Contains(above(tree), other):
		return tree + " may import only " + strings.Join(above(tree), ", ")
	case lab(to) && !lab(from):
		return "the laboratory is no part of the product: nothing imports it"
	case from == "node/api" && to == "node":
		return "node/api takes a struct of functions, not node"
	case strings.HasPrefix(from, to+"/") && !vocabulary(to) && !forTests:
		return "a child imports its parent"
	case vocabulary(from) && strings.HasPrefix(to, from+"/"):
		return "a vocabulary imports what is made of its words"
	}
	return ""
}

func arrowFaults(all []source) []string {
	var faults []string
	for _, s := range all {
		if s.test {
			continue
		}
		for _, imp := range s.file.Imports {
			to, ours := strings.CutPrefix(strings.Trim(imp.Path.Value, `"`), module+"/")
			if !ours {
				continue
			}
			if fault := arrowFault(s.dir(), to); fault != "" {
				faults = append(faults, fmt.Sprintf("%s: imports %s: %s", s.pos(imp), to, fault))
			}
		}
	}
	return faults
}

func commentFaults(all []source) []string {
	comments, dirs := map[string][]string{}, map[string]bool{}
	for _, s := range all {
		if s.test {
			continue
		}
		dirs[s.dir()] = true
		if s.file.Doc != nil {
			comments[s.dir()] = append(comments[s.dir()], s.name)
		}
	}
	var faults []string
	for dir := range dirs {
		if n := len(comments[dir]); n != 1 {
			faults = append(faults, fmt.Sprintf("%s: %d package comments %v, want 1", dir, n, comments[dir]))
		}
	}
	return faults
}

// codeLines are the lines of a file that carry code: those that a token
// touches, the lines of a raw string included.
func codeLines(s source) map[int]bool {
	fset := token.NewFileSet()
	file := fset.AddFile(s.name, -1, len(s.text))
	var sc scanner.Scanner
	sc.Init(file, s.text, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, lit := sc.Scan()
		if tok == token.EOF {
			return lines
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue
		}
		first := fset.Position(pos).Line
		for l := first; l <= first+strings.Count(lit, "\n"); l++ {
			lines[l] = true
		}
	}
}

// sizeFaults finds files and functions that hold too much code. large are test files and
// functions of tests that may be larger: what they may have at most.
func sizeFaults(all []source, large map[string]int) []string {
	var faults []string
	found := map[string]bool{}
	for _, s := range all {
		check := func(name, where string, n, most int) {
			may, listed := large[name]
			switch {
			case n <= most:
			case !s.test || !listed:
				faults = append(faults, fmt.Sprintf("%s has %d lines of code, want at most %d", where, n, most))
			case n > may:
				faults = append(faults, fmt.Sprintf("%s has %d lines of code, and may have %d at most", where, n, may))
				fallthrough
			default:
				found[name] = true
			}
		}
		lines, file, function := codeLines(s), maxFileCode-1, maxFunctionCode-1
		if s.test {
			file, function = maxFileCode, maxFunctionCode
		}
		check(s.name, s.name+":", len(lines), file)
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := 0
			for l := s.fset.Position(f.Pos()).Line; l <= s.fset.Position(f.End()).Line; l++ {
				if lines[l] {
					n++
				}
			}
			check(f.Name.Name, s.pos(f)+": "+f.Name.Name, n, function)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(large)) {
		if !found[name] {
			faults = append(faults, name+" is not above the budget: take it off the list")
		}
	}
	return faults
}

// texts are the lines of a file that carry a long text, or a part of one.
func texts(s source) map[int]bool {
	lines := map[int]bool{}
	ast.Inspect(s.file, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING || len(lit.Value) < longText {
			return true
		}
		first := s.fset.Position(lit.Pos()).Line
		for l := first; l <= first+strings.Count(lit.Value, "\n"); l++ {
			lines[l] = true
		}
		return true
	})
	return lines
}

func columnFaults(all []source) []string {
	var faults []string
	for _, s := range all {
		free := texts(s)
		for i, line := range strings.Split(string(s.text), "\n") {
			columns := utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
			if columns > maxColumns && !free[i+1] {
				faults = append(faults, fmt.Sprintf("%s:%d: %d columns, want at most %d", s.name, i+1, columns,
					maxColumns))
			}
		}
	}
	return faults
}

// sizes are the methods of each type and the lines of each package.
func sizes(all []source) (methods, lines map[string]int) {
	methods, lines = map[string]int{}, map[string]int{}
	for _, s := range all {
		if s.test {
			continue
		}
		lines[s.dir()] += strings.Count(string(s.text), "\n")
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				if id := receiver(f.Recv.List[0].Type); id != nil {
					methods[s.dir()+"."+id.Name]++
				}
			}
		}
	}
	return methods, lines
}

// receiver is the type whose method a receiver makes.
func receiver(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	}
	return root(e)
}

// roomFaults finds types and packages that hold too much. large are those that may.
func roomFaults(all []source, large map[string]int) []string {
	var faults []string
	check := func(name string, n, most int, what string) {
		if may, ok := large[name]; ok {
			switch {
			case n <= most:
				faults = append(faults, fmt.Sprintf("%s has %d %s: take it off the list", name, n, what))
			case n > may:
				faults = append(faults, fmt.Sprintf("%s has %d %s, and may have %d at most", name, n, what, may))
			}
		} else if n > most {
			faults = append(faults, fmt.Sprintf("%s has %d %s, want at most %d", name, n, what, most))
		}
	}
	methods, lines := sizes(all)
	for name, n := range methods {
		check(name, n, maxMethods, "methods")
	}
	for name, n := range lines {
		check(name, n, maxPackage, "lines")
	}
	slices.Sort(faults)
	return faults
}

func nameFaults(all []source) []string {
	var faults []string
	for _, s := range all {
		for _, bad := range []string{"util", "utils", "common", "types", "models", "helpers", "misc"} {
			if path.Base(s.dir()) == bad || s.file.Name.Name == bad {
				faults = append(faults, fmt.Sprintf("%s: a package named %s says nothing", s.name, bad))
			}
		}
	}
	return faults
}

// stateFaults finds init functions, and assignments to package variables.
func stateFaults(all []source) []string {
	vars := map[string]map[string]bool{} // by directory
	for _, s := range all {
		for _, d := range s.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if s.test || !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if vars[s.dir()] == nil {
						vars[s.dir()] = map[string]bool{}
					}
					vars[s.dir()][name.Name] = true
				}
			}
		}
	}
	var faults []string
	for _, s := range all {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if s.test || !ok {
				continue
			}
			if f.Recv == nil && f.Name.Name == "init" {
				faults = append(faults, s.pos(f)+": func init")
			}
			faults = append(faults, assignments(s, f, vars[s.dir()])...)
		}
	}
	return faults
}

// assignments finds in f what changes one of the package variables vars: an
// assignment to it, to its field or to its element.
func assignments(s source, f *ast.FuncDecl, vars map[string]bool) []string {
	var faults []string
	check := func(e ast.Expr) {
		if id := root(e); id != nil && id.Name != "_" && vars[id.Name] && !local(f, id) {
			faults = append(faults, fmt.Sprintf("%s: package variable %s changes", s.pos(e), id.Name))
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				if n.Tok != token.DEFINE {
					check(e)
				}
			}
		case *ast.IncDecStmt:
			check(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				check(n.X)
			}
		}
		return true
	})
	return faults
}

// root is the variable that an assignable expression begins with.
func root(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return root(e.X)
	case *ast.IndexExpr:
		return root(e.X)
	case *ast.ParenExpr:
		return root(e.X)
	case *ast.StarExpr:
		return root(e.X)
	}
	return nil
}

// local says that the parser resolved id to something declared inside f.
func local(f *ast.FuncDecl, id *ast.Ident) bool {
	return id.Obj != nil && id.Obj.Pos() >= f.Pos() && id.Obj.Pos() < f.End()
}

func TestArrowsPointDown(t *testing.T)           { report(t, arrowFaults) }
func TestEveryPackageHasOneComment(t *testing.T) { report(t, commentFaults) }
func TestPackageNamesSaySomething(t *testing.T)  { report(t, nameFaults) }
func TestNoPackageStateAndNoInit(t *testing.T)   { report(t, stateFaults) }
func TestLinesAreNotTooLong(t *testing.T)        { report(t, columnFaults) }

func TestSizeBudget(t *testing.T) {
	report(t, func(all []source) []string { return sizeFaults(all, largeTests()) })
}

func TestRoomsHoldNotTooMuch(t *testing.T) {
	report(t, func(all []source) []string { return roomFaults(all, tooLarge()) })
}

func report(t *testing.T, check func([]source) []string) {
	t.Helper()
	all := read(t, os.DirFS("."))
	if len(all) < 20 {
		t.Fatalf("only %d files found", len(all))
	}
	for _, fault := range check(all) {
		t.Error(fault)
	}
}

// methods are n methods of the type name.
func methods(name string, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\ntype %s int\n", name)
	for i := range n {
		fmt.Fprintf(&b, "\nfunc (x *%s) m%d() {}\n", name, i)
	}
	return b.String()
}

// The checks are held against a tree that breaks every rule once.
func TestTheChecksCatch(t *testing.T) {
	long := "package p\n\nfunc long() {\n" + strings.Repeat("\tprintln()\n", maxFunctionCode) + "}\n"
	pad := strings.Repeat("var _ = 1 // code\n\n// no code\n", maxFileCode)
	imports := func(of string) string { return "package p\n\nimport _ \"" + module + "/" + of + "\"\n" }
	tree := fstest.MapFS{
		"partition/a.go":     {Data: []byte("// Package p is one.\n" + imports("store"))},
		"partition/b.go":     {Data: []byte("// Package p is two.\npackage p\n")},
		"store/index/a.go":   {Data: []byte(imports("store"))}, // allowed
		"store/b.go":         {Data: []byte(imports("store/index"))},
		"crawler/a.go":       {Data: []byte(imports("dht"))},
		"crawler/fetch/a.go": {Data: []byte(imports("crawler"))},
		"node/api/a.go":      {Data: []byte(imports("node"))},
		"store/t.go":         {Data: []byte(imports("crawler/crawltest"))},
		"newtree/a.go":       {Data: []byte(imports("partition"))},
		"store/wide.go": {Data: []byte("package p\n\nvar _ = 1" + strings.Repeat(" + 1", 30) + "\n\nvar _ = `" +
			strings.Repeat("text ", 30) + "`\n")},
		"store/room.go":      {Data: []byte("package p\n" + methods("a", 41) + methods("b", 50) + methods("c", 2))},
		"cmd/a/a.go":         {Data: []byte("// Package p is one.\n" + imports("cmd/echo-lab/poll"))},
		"cmd/echo-lab/a.go":  {Data: []byte("// Package p is one.\n" + imports("cmd/echo-lab/poll"))}, // allowed
		"node/nodetest/a.go": {Data: []byte(imports("node"))},                                         // allowed
		"node/long.go":       {Data: []byte(long)},
		"node/pad.go":        {Data: []byte("package p\n" + pad)},
		"node/gen.go":        {Data: []byte("// Code generated by x. DO NOT EDIT.\n\npackage p\n" + pad)},
		"store/common/a.go":  {Data: []byte("package common\n")},
		"dht/state.go":       {Data: []byte("package p\n\nvar m = map[int]int{}\n\nfunc init() { m[1] = 2 }\n\nfunc f() { m := 1; m++; _ = m }\n")},
		"node/testdata/x.go": {Data: []byte("not Go")},
		"node/pad_test.go":   {Data: []byte("package p\n" + pad)},
		"dht/much_test.go":   {Data: []byte(strings.Replace(long, "long", "much", 1))},
		"dht/more_test.go":   {Data: []byte(strings.Replace(long, "long() {", "more() {\n\tprintln()", 1))},
		"node/most_test.go": {Data: []byte("package p\n" + strings.TrimSuffix(pad, "var _ = 1 // code\n\n"+
			"// no code\n"))},
		"dht/long_test.go": {Data: []byte(long)},
	}
	all := read(t, tree)
	for _, c := range []struct {
		name  string
		check func([]source) []string
		want  []string
	}{
		{"arrows", arrowFaults, []string{"partition/a.go", "store/b.go", "crawler/a.go", "crawler/fetch/a.go",
			"node/api/a.go", "store/t.go", "newtree/a.go", "cmd/a/a.go"}},
		{"comments", commentFaults, []string{"partition: 2", "store: 0", "store/index: 0", "crawler: 0",
			"crawler/fetch: 0", "node: 0", "node/api: 0", "node/nodetest: 0", "newtree: 0", "store/common: 0",
			"dht: 0"}},
		{"size", func(all []source) []string {
			return sizeFaults(all, map[string]int{"much": 82, "more": 82, "node/pad_test.go": 501, "gone": 90})
		}, []string{"node/long.go:3: long has 82", "node/pad.go: has 501", "dht/long_test.go:3: long has 82",
			"dht/more_test.go:3: more has 83 lines of code, and may", "gone is not above"}},
		{"columns", columnFaults, []string{"store/wide.go:3: 129 columns"}},
		{"rooms", func(all []source) []string {
			return roomFaults(all, map[string]int{"store.b": 49, "store.c": 60})
		}, []string{"store.a has 41 methods", "store.b has 50 methods, and may", "store.c has 2 methods: take it off"}},
		{"names", nameFaults, []string{"store/common/a.go"}},
		{"state", stateFaults, []string{"dht/state.go:5: func init", "dht/state.go:5: package variable m"}},
	} {
		got := c.check(all)
		if len(got) != len(c.want) {
			t.Errorf("%s: %d faults, want %d: %q", c.name, len(got), len(c.want), got)
		}
		for _, want := range c.want {
			if !slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, want) }) {
				t.Errorf("%s: nothing found of %q in %q", c.name, want, got)
			}
		}
	}
}
