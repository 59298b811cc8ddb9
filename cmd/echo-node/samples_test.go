package main

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest"
)

// sampleLine matches a line of a document that runs echo-node.
var sampleLine = regexp.MustCompile(`^    ((?:echo '.*' \| )?\./echo-node .*)$`)

// samplesOf returns the commands of a document in order, from one section or from all ("").
func samplesOf(t *testing.T, document, section string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(document)))
	if err != nil {
		t.Fatal(err)
	}
	in, all := section == "", []string(nil)
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "## ") && section != "" {
			in = line == "## "+section
		}
		if m := sampleLine.FindStringSubmatch(line); m != nil && in {
			all = append(all, m[1])
		}
	}
	return all
}

// reader acts like a reader of a document: it runs the commands in a directory of its own.
type reader struct {
	t       *testing.T
	dir     string
	replace *strings.Replacer // changes that loopback requires
	env     []string
	peers   []running
}

// running is a sample that runs until it is interrupted. ended is closed then; only after that its
// ProcessState may be read.
type running struct {
	*exec.Cmd
	ended chan struct{}
}

// command returns one sample as a shell command, and its output.
func (r *reader) command(sample string) (*exec.Cmd, *bytes.Buffer) {
	var said bytes.Buffer
	cmd := exec.CommandContext(r.t.Context(), "sh", "-c", "exec 2>&1; "+r.replace.Replace(sample))
	cmd.Dir, cmd.Env, cmd.Stdout = r.dir, append(os.Environ(), r.env...), &said
	return cmd, &said
}

// peer starts a sample that runs until it is interrupted.
func (r *reader) peer(sample string) {
	r.t.Helper()
	cmd, said := r.command("exec " + sample)
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is read of its ProcessState
		close(ended)
	}()
	r.t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		if r.t.Failed() {
			r.t.Logf("%s said:\n%s", sample, said)
		}
	})
	r.peers = append(r.peers, running{cmd, ended})
}

// answers repeats a sample until it succeeds and prints want.
func (r *reader) answers(sample, want string) {
	r.t.Helper()
	if err := waits(sample, func() error {
		cmd, said := r.command(sample)
		err := cmd.Run()
		if err == nil && !strings.Contains(said.String(), want) {
			err = fmt.Errorf("%q is not said", want)
		}
		if err != nil {
			err = fmt.Errorf("%w:\n%.2000s", err, said)
		}
		return err
	}); err != nil {
		r.t.Fatal(err)
	}
}

// watches runs a sample that prints repeatedly, and interrupts it.
func (r *reader) watches(sample string) {
	r.t.Helper()
	cmd, said := r.command("exec " + sample)
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	stop := time.AfterFunc(3*time.Second, func() { cmd.Process.Signal(syscall.SIGINT) })
	defer stop.Stop()
	if err := cmd.Wait(); err != nil || said.Len() == 0 {
		r.t.Errorf("%s: %v\n%s", sample, err, said)
	}
}

// newReader returns a reader with an empty directory that has echo-node in it.
func newReader(t *testing.T) *reader {
	t.Helper()
	r := &reader{t: t, dir: t.TempDir(), replace: strings.NewReplacer(),
		env: []string{"ECHO_ALLOW_NET=127.75.0.0/16", "ECHO_DELAY=100ms", "ECHO_LISTEN=/ip4/127.0.0.1/tcp/0"}}
	if err := os.Symlink(echoNode(t), filepath.Join(r.dir, "echo-node")); err != nil {
		t.Fatal(err)
	}
	return r
}

// The samples of README and docs/search.md run as they are written, except for the addresses. Test
// sites and free ports replace those of the samples.
func TestSamplesOfTheDocuments(t *testing.T) {
	world := crawltest.NewWorld(crawltest.Options{Seed: 5, Sites: 4, Pages: 4, Words: 60, Prefix: "127.75"})
	if err := world.Start(); err != nil {
		t.Fatal(err)
	}
	defer world.Close()
	home, err := url.Parse(world.Home(0))
	if err != nil {
		t.Fatal(err)
	}
	first, other := world.Seeds()[0], world.Home(1)
	r := newReader(t)
	a, erra := freeAddr()
	b, errb := freeAddr()
	if erra != nil || errb != nil {
		t.Fatal(erra, errb)
	}
	word := world.Words()[0]
	r.replace = strings.NewReplacer("127.0.0.1:7701", a, "127.0.0.1:7702", b, "https://example.org/news/42", first,
		"https://example.org/", first, "https://example.com/", other, "query example", "query "+word)
	site := home.Hostname()
	ran := map[string]int{}
	for _, sample := range samplesOf(t, "README.md", "One real use, from start to end") {
		verb := strings.Fields(sample)[1]
		ran[verb]++
		switch {
		case verb == "run" && len(r.peers) == 0:
			r.peer(sample)
			r.answers("./echo-node status --api 127.0.0.1:7701", "slices")
			r.answers("test -s a/addrs", "") // like a person who waits for the log
		case verb == "run":
			r.peer(sample)
			r.answers("./echo-node status --api 127.0.0.1:7701", "(2 peers)")
		case verb == "status":
			r.watches(sample)
		case verb == "query" && strings.Contains(sample, "example"):
			r.answers(sample, "http://")
		case verb == "show":
			r.answers(sample, site)
		default:
			r.answers(sample, "")
		}
	}
	for _, verb := range []string{"run", "seed", "status", "query", "show", "owner", "export"} {
		if ran[verb] == 0 {
			t.Errorf("README.md has no sample of %s", verb)
		}
	}
	for _, name := range []string{"records.jsonl", "records.warc.gz"} {
		if st, err := os.Stat(filepath.Join(r.dir, name)); err != nil || st.Size() < 1000 {
			t.Errorf("%s: %v, %v", name, st, err)
		}
	}
	r.ofSearch(a)
	r.stop()
}

// stop interrupts the peers. Each must end well: "Interrupt a peer once to stop it."
func (r *reader) stop() {
	r.t.Helper()
	for _, p := range r.peers {
		if err := p.Process.Signal(os.Interrupt); err != nil {
			r.t.Error(err)
		}
	}
	for _, p := range r.peers {
		select {
		case <-p.ended:
			if !p.ProcessState.Success() {
				r.t.Errorf("%v: %v", p.Args, p.ProcessState)
			}
		case <-time.After(time.Minute):
			r.t.Errorf("%v does not end", p.Args)
		}
	}
	r.peers = nil
}

// ofSearch runs the samples of docs/search.md, which send requests to the peer at api.
func (r *reader) ofSearch(api string) {
	for name, text := range map[string]string{
		"messages.tsv":   "1\to comboio para o Porto está atrasado\n2\to comboio para o Porto está atrasado\n",
		"profiles.jsonl": `{"id":"ana","name":"Ana","location":"Viseu, Portugal","posts":["bom dia"]}` + "\n",
	} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	r.env = append(r.env, "ECHO_API="+api)
	samples := samplesOf(r.t, "docs/search.md", "")
	if len(samples) < 10 {
		r.t.Errorf("docs/search.md has only %d samples", len(samples))
	}
	for _, sample := range samples {
		r.answers(sample, "")
	}
}

// The samples of docs/operate.md about a private swarm: who has a code gets in.
func TestSamplesOfAPrivateSwarm(t *testing.T) {
	r := newReader(t)
	api, err := freeAddr()
	if err != nil {
		t.Fatal(err)
	}
	r.env = append(r.env, "ECHO_API="+api)
	for _, sample := range samplesOf(t, "docs/operate.md", "Networks and private swarms") {
		sample, _, _ = strings.Cut(sample, " #")
		switch verb := strings.Fields(sample)[1]; {
		case verb == "run" && len(r.peers) == 0:
			r.peer(sample)
			r.answers("test -s a/addrs", "")
		case verb == "invite":
			cmd, said := r.command(sample)
			if err := cmd.Run(); err != nil {
				t.Fatalf("%s: %v\n%s", sample, err, said)
			}
			code := strings.Fields(said.String())
			r.replace = strings.NewReplacer("CODE", code[len(code)-1])
		default:
			r.peer("env ECHO_API= " + sample)
			r.answers("./echo-node status --api "+api, "(2 peers)")
		}
	}
	if len(r.peers) != 2 {
		t.Errorf("%d peers", len(r.peers))
	}
	r.stop()
}

// The samples of docs/operate.md about backups, and those of docs/geo.md and docs/revisit.md that run
// a peer.
func TestSamplesOfBackupsPlacesAndRevisits(t *testing.T) {
	r := newReader(t)
	api, err := freeAddr()
	if err != nil {
		t.Fatal(err)
	}
	r.env = append(r.env, "ECHO_API="+api)
	r.replace = strings.NewReplacer("/mnt/other", filepath.Join(r.dir, "other"))
	ran := 0
	for _, sample := range samplesOf(t, "docs/operate.md", "Backup") {
		sample, _, _ = strings.Cut(sample, " #")
		ran++
		switch verb := strings.Fields(sample)[1]; {
		case verb == "run" && len(r.peers) == 0:
			r.peer(sample)
			r.answers("./echo-node status --api "+api, "slices")
			r.answers("ls -d other/a/echo-*Z", "echo-")
		case verb == "run":
			r.peer("env ECHO_API= " + sample)
			r.answers("./echo-node status --api "+api, "(2 peers)")
		case verb == "restore":
			made, err := filepath.Glob(filepath.Join(r.dir, "other", "a", "echo-*Z"))
			if err != nil || len(made) == 0 {
				t.Fatal(made, err)
			}
			r.replace = strings.NewReplacer("/mnt/other/a/echo-20260102T030405Z", made[0])
			r.answers(sample, "")
		default:
			r.answers(sample, "")
		}
	}
	r.stop()
	for _, of := range []struct{ document, section, data string }{
		{"docs/geo.md", "For users", "geo"}, {"docs/revisit.md", "For users", "revisit"}} {
		r.replace = strings.NewReplacer("--data a", "--data "+of.data)
		for _, sample := range samplesOf(t, of.document, of.section) {
			if verb := strings.Fields(sample)[1]; verb != "run" {
				continue // demo has a test of its own
			}
			ran++
			r.peer(sample)
			r.answers("./echo-node status --api "+api, "slices")
			r.stop()
		}
	}
	if ran != 6 {
		t.Errorf("%d samples ran", ran)
	}
}
