package api

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/echo-node/echo-node/partition"
)

// TestRelease checks that a Key in quarantine is listed with its reason. A person who gives a
// name can release it.
func TestRelease(t *testing.T) {
	p := fake()
	var said []string
	p.Quarantine = func(context.Context) (Quarantine, error) {
		return Quarantine{Keys: []Quarantined{{Key: "web:https://a.test/", Reason: "under way at 2 deaths"}}}, nil
	}
	p.Release = func(_ context.Context, k partition.Key, by string) error {
		if by == "late" {
			return fmt.Errorf("%w: not in quarantine", ErrInvalid)
		}
		said = append(said, string(k)+" "+by)
		return nil
	}
	c, _ := serve(t, Options{Peer: p})
	q, err := c.Quarantine(t.Context())
	if err != nil || len(q.Keys) != 1 || q.Keys[0].Reason != "under way at 2 deaths" {
		t.Errorf("quarantine: %+v, %v", q, err)
	}
	got, err := c.Release(t.Context(), Releasing{Key: "https://A.test", By: "rui"})
	if err != nil || got.Key != "web:https://a.test/" || len(said) != 1 || said[0] != "web:https://a.test/ rui" {
		t.Errorf("release: %+v, %v, %v", got, err, said)
	}
	for _, bad := range []Releasing{{Key: "https://a.test"}, {Key: "nothing:at all", By: "rui"},
		{Key: "https://a.test", By: "late"}} {
		if _, err := c.Release(t.Context(), bad); !errors.Is(err, ErrInvalid) || len(said) != 1 {
			t.Errorf("%+v: %v, %v", bad, err, said)
		}
	}
}

// TestSeedAgain checks that with again the peer looks now at a known seed, and that the answer
// says so. A new seed is admitted as usual.
func TestSeedAgain(t *testing.T) {
	p := fake()
	p.Seed = func(_ context.Context, keys []partition.Key) (out []SeedAnswer, err error) {
		for _, k := range keys {
			a := SeedAnswer{Key: string(k), Answer: "known"}
			if k == "web:https://new.test/" {
				a.Answer = "admitted"
			}
			out = append(out, a)
		}
		return out, nil
	}
	var said []partition.Key
	p.Again = func(_ context.Context, k partition.Key) error {
		switch k {
		case "web:https://busy.test/":
			return fmt.Errorf("%w: no owner", ErrUnavailable)
		case "web:https://alone.test/":
			return fmt.Errorf("%w: in quarantine", ErrInvalid)
		}
		said = append(said, k)
		return nil
	}
	c, _ := serve(t, Options{Peer: p})
	seeds := []string{"https://a.test", "https://new.test", "https://busy.test", "https://alone.test"}
	got, err := c.SeedAgain(t.Context(), seeds)
	if err != nil || len(got) != len(seeds) || len(said) != 1 || said[0] != "web:https://a.test/" {
		t.Fatalf("%+v, %v, %v", got, err, said)
	}
	for i, want := range []string{"again", "admitted", "busy", "refused"} {
		if got[i].Answer != want || (i > 1) != (got[i].Reason != "") {
			t.Errorf("%s: %+v, want %s", seeds[i], got[i], want)
		}
	}
	if got, err = c.Seed(t.Context(), seeds[:1]); err != nil || got[0].Answer != "known" || len(said) != 1 {
		t.Errorf("without again: %+v, %v, %v", got, err, said)
	}
}
