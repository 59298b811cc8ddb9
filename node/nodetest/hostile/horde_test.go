package hostile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"

	"github.com/echo-node/echo-node/node/nodetest/hostile"
)

var hordeFile = flag.String("horde", "", "be the strangers of the flood test that this file describes")

// horde is the strangers of the flood test. They run in a separate process with the lowest
// priority. Real strangers have their own machines, and the test measures only the work that
// they cause for others.
type horde struct {
	Proto     protocol.ID
	Targets   []peer.AddrInfo
	Rate      float64 // messages per second, in total
	Each      int     // messages of each kind, in total
	Strangers []stranger
}

type stranger struct {
	Key    []byte // Ed25519
	Frames map[hostile.Kind][][]byte
}

// tally counts the results of the messages. Busy counts refusals for lack of a slot or of
// credit.
type tally struct{ Sent, Answered, Refused, Busy, Cut int64 }

func TestMain(m *testing.M) {
	flag.Parse()
	if *hordeFile == "" {
		os.Exit(m.Run())
	}
	if err := attackAs(*hordeFile); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// send runs h to its end.
func (h *horde) send(ctx context.Context, t *testing.T) (sent tally) {
	t.Helper()
	b, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "horde.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "nice", "-n", "19", os.Args[0], "-horde", file)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("the strangers: %v: %s", err, errs.Bytes())
	}
	if err := json.Unmarshal(out.Bytes(), &sent); err != nil {
		t.Fatalf("the strangers said %q: %v", out.Bytes(), err)
	}
	return sent
}

// attackAs is the process of the strangers. It writes the result to its output.
func attackAs(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var h horde
	if err := json.Unmarshal(b, &h); err != nil {
		return err
	}
	n := len(h.Strangers)
	pace := time.Duration(float64(n) / h.Rate * float64(time.Second))
	var each sync.WaitGroup
	var mu sync.Mutex
	var all tally
	for i, s := range h.Strangers {
		from, err := h.connect(s)
		if err != nil {
			return err
		}
		defer func() { _ = from.Close() }()
		each.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 10))
			// they do not send at the same time
			time.Sleep(pace * time.Duration(i) / time.Duration(n))
			tick := time.NewTicker(pace)
			defer tick.Stop()
			var sent tally
			for range h.Each / n {
				for _, kind := range hostile.Kinds() {
					<-tick.C
					frames := s.Frames[kind]
					to := h.Targets[r.IntN(len(h.Targets))].ID
					sent.count(hostile.Sender{Host: from, To: to, Proto: h.Proto}, frames[r.IntN(len(frames))])
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all.Sent, all.Answered, all.Refused = all.Sent+sent.Sent, all.Answered+sent.Answered,
				all.Refused+sent.Refused
			all.Busy, all.Cut = all.Busy+sent.Busy, all.Cut+sent.Cut
		})
	}
	each.Wait()
	return json.NewEncoder(os.Stdout).Encode(all)
}

func (h *horde) connect(s stranger) (host.Host, error) {
	key, err := crypto.UnmarshalEd25519PrivateKey(s.Key)
	if err != nil {
		return nil, err
	}
	from, err := libp2p.New(libp2p.Identity(key), libp2p.NoListenAddrs, libp2p.Transport(quic.NewTransport),
		libp2p.ResourceManager(nil), libp2p.DisableMetrics())
	if err != nil {
		return nil, err
	}
	for _, to := range h.Targets {
		if err := from.Connect(context.Background(), to); err != nil {
			return nil, err
		}
	}
	return from, nil
}

// count sends one message and counts the result.
func (t *tally) count(by hostile.Sender, frame []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	resp, err := by.Send(ctx, frame)
	t.Sent++
	switch {
	case err != nil:
		t.Cut++
	case resp.GetRefusal() != nil:
		t.Refused++
		if strings.Contains(resp.Refusal.Reason, "too many") || strings.Contains(resp.Refusal.Reason, "credit") {
			t.Busy++
		}
	default:
		t.Answered++
	}
}
