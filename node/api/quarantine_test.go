package api

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/echo-node/echo-node/partition"
)

// TestRelease: what is left alone is listed with its reason, and released by a person who says who he is.
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
	for _, bad := range []Releasing{{Key: "https://a.test"}, {Key: "nothing:at all", By: "rui"}, {Key: "https://a.test", By: "late"}} {
		if _, err := c.Release(t.Context(), bad); !errors.Is(err, ErrInvalid) || len(said) != 1 {
			t.Errorf("%+v: %v, %v", bad, err, said)
		}
	}
}
