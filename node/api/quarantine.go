package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/echo-node/echo-node/partition"
)

// Quarantine is GET /api/v1/quarantine: the Keys of this peer's slices that it leaves alone,
// because processes died while they judged them.
type Quarantine struct {
	Keys []Quarantined `json:"keys"`
	More bool          `json:"more,omitempty"` // there are more Keys than the list has
}

// Quarantined is one such Key.
type Quarantined struct {
	Key    partition.Key `json:"key"`
	Reason string        `json:"reason"`
}

// Releasing is the body of PUT /api/v1/quarantine.
type Releasing struct {
	Key string `json:"key" maxLength:"4096" doc:"a Key in quarantine"`
	By  string `json:"by" minLength:"1" maxLength:"200" doc:"who says so"`
}

func (s *Server) releaseRoute() {
	op := operation(http.MethodPut, "quarantine", "Have a Key that is left alone looked at again")
	op.OperationID = "release"
	op.Errors = append(op.Errors, http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity,
		http.StatusServiceUnavailable)
	huma.Register(s.api, op, func(ctx context.Context, in *struct{ Body Releasing }) (*reply[Releasing], error) {
		ctx, cancel := context.WithTimeout(ctx, s.timeout)
		defer cancel()
		var f faults
		k, err := parseKey(in.Body.Key)
		if err != nil {
			f.add("body.key", in.Body.Key, "%v", err)
		}
		if in.Body.By == "" {
			f.add("body.by", in.Body.By, "say who says so")
		}
		if err = f.err(); err == nil {
			err = s.peer.Release(ctx, k, in.Body.By)
		}
		if err != nil {
			return nil, s.problem(ctx, "quarantine", err)
		}
		return &reply[Releasing]{Releasing{Key: string(k), By: in.Body.By}}, nil
	})
}

// Release makes the swarm look again at a Key in quarantine.
func (c *Client) Release(ctx context.Context, r Releasing) (Releasing, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return Releasing{}, err
	}
	return ask[Releasing](ctx, c, http.MethodPut, "/api/v1/quarantine", b)
}

// Quarantine lists the Keys of the peer's slices that are in quarantine.
func (c *Client) Quarantine(ctx context.Context) (Quarantine, error) {
	return fetch[Quarantine](ctx, c, "quarantine", nil)
}
