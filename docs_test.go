package echonode

import (
	"context"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

const operate = "docs/operate.md"

// flagSets are the flags of each command, without the dashes.
type flagSets map[string]map[string]bool

var (
	helpCommand = regexp.MustCompile(`^  ([a-z]+(?: [a-z]+)?)  `)
	helpFlag    = regexp.MustCompile(`^(?:  -[a-z], | {2}| {6})--(\[no-\])?([a-z][a-z-]*)`)
	tableFlag   = regexp.MustCompile("`--([a-z][a-z-]*)")
	heading     = regexp.MustCompile("^### (?:`echo-node ([a-z]+(?: [a-z]+)?)[^`]*`|" +
		"All commands|Commands that ask .*)$")
	metricName  = regexp.MustCompile(`^echo_[a-z0-9]+(?:_[a-z0-9]+)*$`)
	metricRow   = regexp.MustCompile("^\\| `(echo_[a-z0-9_]+)` \\|")
	metricWord  = regexp.MustCompile("`(echo_[a-z0-9_]+)`")
	commandLine = regexp.MustCompile(`^    (?:echo .*\| |docker compose exec \S+ )?` +
		`(?:\./)?echo-node ((?:focus )?[a-z]+)`)
	lineFlag = regexp.MustCompile(`(?:^|\s)--([a-z][a-z-]*)`)
	mdLink   = regexp.MustCompile(`\]\(([^)#]*)(#[^)]*)?\)`)
)

// helpOf is what a command prints with --help.
func helpOf(t *testing.T, program string, command string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, append(strings.Fields(command), "--help")...).Output()
	if err != nil {
		t.Fatalf("echo-node %s --help: %v", command, err)
	}
	return strings.Split(string(out), "\n")
}

// builtProgram is the echo-node that .ci/run has built, or one built here.
func builtProgram(t *testing.T) string {
	t.Helper()
	if built := os.Getenv("ECHO_NODE"); built != "" {
		return built
	}
	program := filepath.Join(t.TempDir(), "echo-node")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/echo-node")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// programFlags asks the program for its commands and their flags.
func programFlags(t *testing.T) flagSets {
	t.Helper()
	program := builtProgram(t)
	commands := func(of string) (names []string) {
		for _, line := range helpOf(t, program, of) {
			if m := helpCommand.FindStringSubmatch(line); m != nil {
				names = append(names, m[1])
			}
		}
		return names
	}
	all := flagSets{}
	for _, name := range commands("") {
		if name == "focus" {
			continue // its commands follow
		}
		all[name] = nil
	}
	for _, name := range commands("focus") {
		all[name] = nil
	}
	for name := range all {
		all[name] = map[string]bool{}
		for _, line := range helpOf(t, program, name) {
			if m := helpFlag.FindStringSubmatch(line); m != nil {
				all[name][m[2]] = true
				if m[1] != "" {
					all[name]["no-"+m[2]] = true
				}
			}
		}
	}
	return all
}

// operateFlags reads the tables of flags: those of each command, and those that
// stand once for all commands, or for all that ask a peer.
func operateFlags(text string) (sets flagSets, shared map[string]bool) {
	sets, shared = flagSets{}, map[string]bool{}
	var into map[string]bool
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if m := heading.FindStringSubmatch(line); m != nil {
			into = shared
			if m[1] != "" {
				into = map[string]bool{}
				sets[m[1]] = into
			}
		} else if strings.HasPrefix(line, "## ") || strings.HasPrefix(line, "### ") {
			into = nil
		}
		if into == nil || !strings.HasPrefix(line, "| `-") {
			continue
		}
		cell, _, _ := strings.Cut(line[1:], " | ")
		for _, m := range tableFlag.FindAllStringSubmatch(cell, -1) {
			into[m[1]] = true
		}
	}
	return sets, shared
}

// flagFaults compares the program with the document, in both directions.
func flagFaults(program, document flagSets, shared map[string]bool) (faults []string) {
	used := map[string]bool{}
	for _, command := range slices.Sorted(maps.Keys(program)) {
		described, ok := document[command]
		if !ok {
			faults = append(faults, "no section about echo-node "+command)
			continue
		}
		for _, flag := range slices.Sorted(maps.Keys(program[command])) {
			used[flag] = true
			if !described[flag] && !shared[flag] {
				faults = append(faults, fmt.Sprintf("echo-node %s: --%s is not described", command, flag))
			}
		}
		for _, flag := range slices.Sorted(maps.Keys(described)) {
			if !program[command][flag] {
				faults = append(faults, fmt.Sprintf("echo-node %s has no --%s", command, flag))
			}
		}
	}
	for _, command := range slices.Sorted(maps.Keys(document)) {
		if program[command] == nil {
			faults = append(faults, "there is no command echo-node "+command)
		}
	}
	for _, flag := range slices.Sorted(maps.Keys(shared)) {
		if !used[flag] {
			faults = append(faults, "no command has --"+flag)
		}
	}
	return faults
}

// codeMetrics are the names of metrics in the production code of node.
func codeMetrics(all []source) map[string]bool {
	names := map[string]bool{}
	for _, s := range all {
		if s.test || s.dir() != "node" && !strings.HasPrefix(s.dir(), "node/") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if name, err := strconv.Unquote(lit.Value); err == nil && metricName.MatchString(name) {
					names[name] = true
				}
			}
			return true
		})
	}
	return names
}

// metricFaults compares the tables of metrics with the code, in both directions.
func metricFaults(code map[string]bool, text string) (faults []string) {
	described := map[string]bool{}
	for line := range strings.Lines(text) {
		if m := metricRow.FindStringSubmatch(line); m != nil {
			if described[m[1]] {
				faults = append(faults, m[1]+" stands in two tables")
			}
			described[m[1]] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(code)) {
		if !described[name] {
			faults = append(faults, name+" is not described")
		}
	}
	for _, m := range metricWord.FindAllStringSubmatch(text, -1) {
		described[m[1]] = true
	}
	for _, name := range slices.Sorted(maps.Keys(described)) {
		if !code[name] {
			faults = append(faults, "there is no metric "+name)
		}
	}
	return faults
}

// documents are the texts that people read: README and docs, without the decisions,
// which say what was true when they were taken.
func documents(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("docs/*.md")
	if err != nil || len(names) < 9 {
		t.Fatalf("docs: %d documents, %v", len(names), err)
	}
	all := map[string]string{}
	for _, name := range append(names, "README.md", "CONTRIBUTING.md") {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(b)
	}
	return all
}

// commandFaults finds, in samples, commands and flags that the program does not have.
func commandFaults(program flagSets, name, text string) (faults []string) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, " #")
		m := commandLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		flags, ok := program[m[1]]
		if !ok {
			faults = append(faults, fmt.Sprintf("%s: there is no command echo-node %s", name, m[1]))
			continue
		}
		for _, f := range lineFlag.FindAllStringSubmatch(line, -1) {
			if !flags[f[1]] {
				faults = append(faults, fmt.Sprintf("%s: echo-node %s has no --%s", name, m[1], f[1]))
			}
		}
	}
	return faults
}

// formFaults finds long lines and links to files that are not there.
func formFaults(name, text string) (faults []string) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\n")
		if utf8.RuneCountInString(line) > 100 && !strings.HasPrefix(line, "|") {
			faults = append(faults, fmt.Sprintf("%s:%d: over 100 columns", name, n))
		}
		for _, m := range mdLink.FindAllStringSubmatch(line, -1) {
			target := m[1]
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), target)); err != nil {
				faults = append(faults, fmt.Sprintf("%s:%d: %v", name, n, err))
			}
		}
	}
	return faults
}

func TestDocumentsMatchTheProgram(t *testing.T) {
	docs, program := documents(t), programFlags(t)
	if len(program) < 20 || len(program["run"]) < 50 {
		t.Fatalf("only %d commands and %d flags of run found", len(program), len(program["run"]))
	}
	sets, shared := operateFlags(docs[operate])
	faults := flagFaults(program, sets, shared)
	faults = append(faults, metricFaults(codeMetrics(read(t, os.DirFS("."))), docs[operate])...)
	for i := range faults {
		faults[i] = operate + ": " + faults[i]
	}
	for name, text := range docs {
		faults = append(faults, commandFaults(program, name, text)...)
	}
	for _, fault := range faults {
		t.Error(fault)
	}
}

func TestDocumentsHaveForm(t *testing.T) {
	docs := documents(t)
	for name, text := range docs {
		for _, fault := range formFaults(name, text) {
			t.Error(fault)
		}
	}
	if n := strings.Count(docs["README.md"], "\n"); n > 150 {
		t.Errorf("README.md has %d lines, want at most 150", n)
	}
	for _, command := range []string{"go run ./cmd/echo-node demo --once", "go test -race -timeout 20m ./node ./..."} {
		if !strings.Contains(docs["README.md"], "\n    "+command+" ") {
			t.Errorf("README.md does not have %q", command)
		}
	}
}

// The checks are held against a document and a program that differ in every way.
func TestTheChecksOfDocumentsCatch(t *testing.T) {
	text := "### All commands\n| `-h`, `--help` | | |\n| `--gone` | | |\n" +
		"### `echo-node run [A]`\n| `--data DIR` | | see `--other` |\n| `--old` | | |\n" +
		"### `echo-node nothing`\n## Metrics\n" +
		"| `echo_known` | |\n| `echo_known` | |\n| `echo_old_total` | |\n`echo_rumour`\n"
	sets, shared := operateFlags(text)
	program := flagSets{"run": {"help": true, "data": true, "new": true}, "seed": {}}
	got := flagFaults(program, sets, shared)
	got = append(got, metricFaults(map[string]bool{"echo_known": true, "echo_new": true}, text)...)
	samples := "    ./echo-node run --data a --far 1  # --free\n    echo-node fly\n"
	got = append(got, commandFaults(program, "x.md", samples)...)
	got = append(got, formFaults("x.md", strings.Repeat("é", 101)+"\n[x](gone.md#y) [y](#z)\n")...)
	want := []string{
		"echo-node run: --new is not described", "echo-node run has no --old", "no section about echo-node seed",
		"there is no command echo-node nothing", "no command has --gone",
		"echo_known stands in two tables", "echo_new is not described",
		"there is no metric echo_old_total", "there is no metric echo_rumour",
		"x.md: echo-node run has no --far", "x.md: there is no command echo-node fly",
		"x.md:1: over 100 columns", "x.md:2: stat gone.md: no such file or directory",
	}
	if !slices.Equal(got, want) {
		t.Errorf("faults\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
