package dht

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/echo-node/echo-node/dht/wire"
	"github.com/echo-node/echo-node/partition"
)

// childEnv names an environment variable. With it, the test binary runs one peer instead of the
// tests. Its value is a childSpec in JSON.
const childEnv = "ECHO_TEST_PEER"

type childSpec struct {
	Key     string // path of the identity file
	Charter partition.Charter
	Join    []string
}

func TestMain(m *testing.M) {
	warmCoders()
	if spec := os.Getenv(childEnv); spec != "" {
		if err := child(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	LogTo(slog.DiscardHandler) // the tests cause faults on purpose
	os.Exit(m.Run())
}

// child runs one peer until it is killed or its parent ends.
func child(text string) error {
	var spec childSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return err
	}
	key, err := LoadIdentity(spec.Key, true)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d, err := New(ctx, Options{Key: key, Charter: spec.Charter, Join: spec.Join, Listen: loopback()})
	if err != nil {
		return err
	}
	d.Handle(echo)
	fmt.Println(d.ID())
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte() // returns when the parent ends
		cancel()
	}()
	err = d.Run(ctx)
	return errors.Join(err, d.Close())
}

// spawn starts a peer as a process. It returns the peer's id and a function that kills it with
// SIGKILL.
func spawn(t *testing.T, spec childSpec) (id string, kill func()) {
	t.Helper()
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dead := false
	kill = func() {
		if dead {
			return
		}
		dead = true
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = stdin.Close()
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the child says nothing: %v", err)
	}
	return strings.TrimSpace(line), kill
}

// A process killed with SIGKILL closes nothing, and its QUIC connections look alive for half a
// minute. The others still notice its death within seconds. When it is back on other ports, they
// can call it at once.
func TestSIGKILLAndReturn(t *testing.T) {
	t.Parallel()
	ds := form(t, 3)
	spec := childSpec{Key: filepath.Join(t.TempDir(), "key"), Charter: ds[0].opts.Charter, Join: ds[0].Addrs()}
	id, kill := spawn(t, spec)
	sees := func(want bool) func() bool {
		return func() bool {
			for _, d := range ds {
				if _, ok := d.View().Find(id); ok != want {
					return false
				}
			}
			return true
		}
	}
	callAll := func(when string) {
		t.Helper()
		for i, d := range ds {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			began := time.Now()
			_, err := d.Call(ctx, id, whoOwns("web:https://example.org/"))
			cancel()
			if err != nil {
				t.Fatalf("%s, call from %d: %v", when, i, err)
			}
			t.Logf("%s, call from %d took %s", when, i, time.Since(began))
		}
	}
	eventually(t, 20*time.Second, "all see the child", sees(true))
	callAll("at first")

	// It is back before the others noticed.
	kill()
	back := time.Now()
	if again, k := spawn(t, spec); again != id {
		t.Fatalf("another identity: %s, not %s", again, id)
	} else {
		kill = k
	}
	eventually(t, 10*time.Second, "the child's new addresses are known and answer", func() bool {
		for _, d := range ds {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			_, err := d.Call(ctx, id, whoOwns("web:https://example.org/"))
			cancel()
			if err != nil {
				return false
			}
		}
		return sees(true)()
	})
	t.Logf("killed and back: %s until all could call it again", time.Since(back))

	kill()
	t.Logf("death by SIGKILL noticed by all after %s", eventually(t, 12*time.Second, "none sees the child",
		sees(false)))
	for i, d := range ds {
		if g, ok := d.Gone()[id]; !ok || g.Left || g.Member.ID != id || g.Since.IsZero() {
			t.Fatalf("%d remembers the dead as %+v", i, g)
		}
	}
	few, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := ds[0].Call(few, id, whoOwns("web:https://example.org/")); !errors.Is(err, ErrNoPeer) {
		t.Fatalf("a call to the dead: %v", err)
	}
	_, _ = spawn(t, spec)
	t.Logf("seen again after %s", eventually(t, 10*time.Second, "all see the child again", sees(true)))
	callAll("after the return")
	for i, d := range ds {
		if _, ok := d.Gone()[id]; ok {
			t.Errorf("%d still takes it for gone", i)
		}
	}
}

// warmCoders makes the coders of package wire outside of any synctest bubble. Coders that are made
// inside the bubble of a test cannot be used outside it.
func warmCoders() {
	var b bytes.Buffer
	if err := wire.WriteAdmit(&b, &wire.Admit{Space: "warm", Proof: make([]byte, 4096)}); err != nil {
		panic(err)
	}
	if _, err := wire.ReadAdmit(&b); err != nil {
		panic(err)
	}
}
