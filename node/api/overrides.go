package api

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/echo-node/echo-node/partition"
	"github.com/echo-node/echo-node/store"
)

// Overruling is the body of PUT /api/v1/overrides.
type Overruling struct {
	Key     string `json:"key" maxLength:"4096" doc:"an account"`
	Verdict string `json:"verdict" enum:"in,out,undecided," doc:"whether it belongs; empty takes back what was said"`
	By      string `json:"by" minLength:"1" maxLength:"200" doc:"who says so"`
	Why     string `json:"why,omitempty" maxLength:"1000" doc:"for people"`
}

// override checks what a person typed.
func (b Overruling) override() (store.Override, error) {
	var f faults
	k, err := parseKey(b.Key)
	switch {
	case err != nil:
		f.add("body.key", b.Key, "%v", err)
	case k.Kind() != partition.KindAccount:
		f.add("body.key", b.Key, "is no account")
	}
	if !slices.Contains([]string{"", "in", "out", "undecided"}, b.Verdict) {
		f.add("body.verdict", b.Verdict, "must be in, out, undecided or empty")
	}
	if b.By == "" {
		f.add("body.by", b.By, "say who says so")
	}
	return store.Override{V: store.OverrideVersion, Key: k, Verdict: b.Verdict, By: b.By, Why: b.Why}, f.err()
}

func (s *Server) overrideRoute() {
	op := operation(http.MethodPut, "overrides", "Say whether an account belongs; that goes before every judge")
	op.OperationID = "overrule"
	op.Errors = append(op.Errors, http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusServiceUnavailable)
	huma.Register(s.api, op, func(ctx context.Context, in *struct{ Body Overruling }) (*reply[Overruling], error) {
		ctx, cancel := context.WithTimeout(ctx, s.timeout)
		defer cancel()
		taken, err := Overrule(ctx, s.peer, in.Body)
		if err != nil {
			return nil, s.problem(ctx, "overrides", err)
		}
		return &reply[Overruling]{taken}, nil
	})
}

// Overrule gives p a person's verdict as typed, and returns it as it was stored.
func Overrule(ctx context.Context, p Peer, b Overruling) (Overruling, error) {
	o, err := b.override()
	if err != nil {
		return b, err
	}
	b.Key = string(o.Key)
	return b, p.Complete().Overrule(ctx, o)
}

// Overrule sends a person's verdict on whether an account belongs.
func (c *Client) Overrule(ctx context.Context, o Overruling) (Overruling, error) {
	b, err := json.Marshal(o)
	if err != nil {
		return Overruling{}, err
	}
	return ask[Overruling](ctx, c, http.MethodPut, "/api/v1/overrides", b)
}

// Mistakes returns how the judge's verdicts compare with persons' verdicts.
func (c *Client) Mistakes(ctx context.Context) (Mistakes, error) {
	return fetch[Mistakes](ctx, c, "overrides", nil)
}
