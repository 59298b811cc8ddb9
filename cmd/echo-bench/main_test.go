package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/crawler/crawltest"
)

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start runs a test web in the background. The test's end stops it and checks that it ended
// without error.
func start(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	var stderr bytes.Buffer
	go func() { done <- run(ctx, append([]string{"world"}, args...), io.Discard, &stderr) }()
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != exitDone {
			t.Errorf("world exited %d: %s", code, stderr.String())
		}
	})
}

func ask(t *testing.T, args ...string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	code := run(t.Context(), append([]string{"report"}, args...), &out, io.Discard)
	return out.String(), code
}

// await repeats the request until the test web responds.
func await(t *testing.T, args ...string) string {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if out, code := ask(t, args...); code == exitDone {
			return out
		}
		if time.Now().After(deadline) {
			t.Fatal("the world does not answer")
		}
	}
}

func TestWorldByNameTellsItsHostsAndSeeds(t *testing.T) {
	dir, listen, adm := t.TempDir(), freeAddr(t), freeAddr(t)
	hosts, seeds := filepath.Join(dir, "hosts"), filepath.Join(dir, "seeds")
	start(t, "--listen", listen, "--admin", adm, "--sites", "5", "--hosts-out", hosts, "--seeds-out", seeds,
		"--advertise", "127.0.0.1")
	await(t, "--admin", adm)
	text, err := os.ReadFile(hosts)
	if err != nil || strings.Count(string(text), "127.0.0.1 ") != 5 {
		t.Fatalf("hosts file %q: %v", text, err)
	}
	text, err = os.ReadFile(seeds)
	if err != nil {
		t.Fatal(err)
	}
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, listen)
	}
	tr := &http.Transport{DialContext: dial}
	defer tr.CloseIdleConnections()
	for seed := range strings.FieldsSeq(string(text)) {
		resp, err := (&http.Client{Transport: tr}).Get(seed)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", seed, resp.Status)
		}
	}
	out, code := ask(t, "--admin", adm, "--json", "--whole")
	var a Answer
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatal(err)
	}
	if code != exitIncomplete || a.Report.Pages != 3 || a.Missing != a.Expected-3 {
		t.Errorf("exit %d, report %+v", code, a)
	}
}

func TestWorldByAddressStartsOnLoopback(t *testing.T) {
	adm := freeAddr(t)
	seeds := filepath.Join(t.TempDir(), "seeds")
	start(t, "--admin", adm, "--sites", "4", "--pages", "2", "--seeds-out", seeds)
	if out := await(t, "--admin", adm); !strings.Contains(out, "missing") {
		t.Errorf("report %q", out)
	}
	text, err := os.ReadFile(seeds)
	if err != nil || !strings.HasPrefix(string(text), "http://127.77.0.1:") {
		t.Errorf("seeds %q: %v", text, err)
	}
}

func TestReportOfAWholeCrawlExitsZero(t *testing.T) {
	w := crawltest.NewWorld(crawltest.Options{Sites: 3})
	srv := httptest.NewServer(admin(w))
	defer srv.Close()
	adm := strings.TrimPrefix(srv.URL, "http://")
	client := &http.Client{Transport: w.RoundTripper(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, u := range w.Expected(w.Seeds()) {
		resp, err := client.Get(u)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if out, code := ask(t, "--admin", adm, "--whole"); code != exitDone {
		t.Errorf("exit %d: %s", code, out)
	}
	resp, err := http.Post(srv.URL+"/reset", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if out, code := ask(t, "--admin", adm, "--whole"); code != exitIncomplete {
		t.Errorf("after a reset: exit %d: %s", code, out)
	}
}

func TestExitCodesOfWrongUsageAndFailure(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	for _, c := range []struct {
		args string
		want int
		says string
	}{
		{"nosuch", exitUsage, "nosuch"},
		{"world --sites x", exitUsage, "sites"},
		{"world --sites 0 --pages 9000000", exitUsage, "pages 9000000"},
		{"world --listen nonsense", exitUsage, "--listen"},
		{"world --listen 127.0.0.1:0", exitUsage, "port"},
		{"world --listen 127.0.0.1:9 --hosts-out /dev/null/x --advertise nonsense", exitUsage, "--advertise"},
		{"world --sites 1 --hosts-out /dev/null/x", exitFailed, "/dev/null"},
		{"world --sites 1 --admin 127.0.0.1:" + port, exitFailed, "in use"},
		{"report --admin 127.0.0.1:1", exitFailed, "refused"},
		{"--help", exitDone, ""},
	} {
		var stderr bytes.Buffer
		if code := run(t.Context(), strings.Fields(c.args), io.Discard, &stderr); code != c.want ||
			!strings.Contains(stderr.String(), c.says) {
			t.Errorf("%s: exit %d and %q, want %d and %q", c.args, code, stderr.String(), c.want, c.says)
		}
	}
}
