package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/echo-node/echo-node/node/safetext"
	"github.com/echo-node/echo-node/partition"
)

type none struct{}

type reply[T any] struct{ Body T }

// Lists are objects with one field, so that fields can be added later.
type (
	peerList struct {
		Peers []PeerInfo `json:"peers"`
	}
	failureList struct {
		Errors []Failure `json:"errors"`
	}
	recentList struct {
		Records []Hit `json:"records"`
	}
	seedList struct {
		Answers []SeedAnswer `json:"answers"`
	}
)

// routes registers the typed part of the API and its OpenAPI description.
func (s *Server) routes(version string) {
	c := huma.DefaultConfig("echo-node", version)
	c.Info.Description = "One peer of a swarm that crawls together. Any peer answers for all."
	c.DocsPath, c.SchemasPath = "", ""
	c.CreateHooks = nil // they would add a "$schema" field to every response
	c.RejectUnknownQueryParameters = true
	c.Transformers = []huma.Transformer{problemTransformer}
	format := huma.Format{Marshal: marshal, Unmarshal: json.Unmarshal}
	c.Formats = map[string]huma.Format{"application/json": format, "json": format}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}}
	c.Security = []map[string][]string{{"token": {}}, {}}
	s.api = humago.New(s.mux, c)

	p := s.peer
	get(s, "status", "State of this peer", func(ctx context.Context, _ *none) (Status, error) { return p.Status(ctx) })
	get(s, "peers", "Members of the swarm as this peer sees them",
		func(ctx context.Context, _ *none) (peerList, error) {
			v, err := p.Peers(ctx)
			return peerList{list(v)}, err
		})
	get(s, "errors", "Keys that ended without a record or are being retried",
		func(ctx context.Context, _ *none) (failureList, error) {
			v, err := p.Errors(ctx)
			return failureList{list(v)}, err
		})
	get(s, "recent", "What this peer fetched last", func(ctx context.Context, in *struct {
		N int `query:"n" minimum:"1" maximum:"100" default:"20" doc:"records to return"`
	}) (recentList, error) {
		v, err := p.Recent(ctx, in.N)
		return recentList{list(v)}, err
	})
	get(s, "owner", "Who crawls a Key",
		func(ctx context.Context, in *keyParam) (Owner, error) { return withKey(ctx, in, p.Owner) })
	get(s, "records", "What the swarm knows of a Key",
		func(ctx context.Context, in *keyParam) (Shown, error) { return withKey(ctx, in, p.Show) })
	get(s, "copies", "The texts of the whole swarm that say what one says",
		func(ctx context.Context, in *copiesParams) (CopyGroup, error) {
			k, err := keyParam{in.Key}.parse()
			if err != nil {
				return CopyGroup{}, err
			}
			g, err := p.Copies(ctx, k, in.Post)
			g.Members, g.Coverage.Missing = list(g.Members), list(g.Coverage.Missing)
			return g, err
		})
	get(s, "query", "Search the whole swarm", s.query)
	get(s, "gaps", "Parts of the record that are known to be missing",
		func(ctx context.Context, in *gapParams) (GapAnswer, error) {
			q, err := in.query()
			if err != nil {
				return GapAnswer{}, err
			}
			a, err := p.Gaps(ctx, q)
			a.Gaps, a.Missing = list(a.Gaps), list(a.Missing)
			return a, err
		})
	get(s, "overrides", "Where the judge of the community agrees with decisions by hand, and where not",
		func(ctx context.Context, _ *none) (Mistakes, error) {
			m, err := p.Mistakes(ctx)
			m.Mistakes, m.Missing = list(m.Mistakes), list(m.Missing)
			for i := range m.Mistakes {
				m.Mistakes[i].Evidence = list(m.Mistakes[i].Evidence)
			}
			return m, err
		})
	get(s, "quarantine", "Keys of this peer's slices that are left alone, because processes died while they judged them", func(ctx context.Context, _ *none) (Quarantine, error) {
		q, err := p.Quarantine(ctx)
		q.Keys = list(q.Keys)
		return q, err
	})
	s.seedRoute()
	s.releaseRoute()
	s.overrideRoute()
	s.exportRoute()
	s.mapRoute()
}

// get registers GET /api/v1/NAME and limits the time of one response.
func get[I, T any](s *Server, name, summary string, fn func(context.Context, *I) (T, error)) {
	huma.Register(s.api, operation(http.MethodGet, name, summary), func(ctx context.Context, in *I) (*reply[T], error) {
		ctx, cancel := context.WithTimeout(ctx, s.timeout)
		defer cancel()
		v, err := fn(ctx, in)
		if err != nil {
			return nil, s.problem(ctx, name, err)
		}
		return &reply[T]{v}, nil
	})
}

func operation(method, name, summary string) huma.Operation {
	return huma.Operation{
		OperationID: name, Method: method, Path: "/api/v1/" + name, Summary: summary,
		Errors: []int{http.StatusUnauthorized, http.StatusInternalServerError, http.StatusNotImplemented,
			http.StatusGatewayTimeout},
	}
}

// problem returns err as a problem. An internal error is logged in full.
func (s *Server) problem(ctx context.Context, name string, err error) error {
	p := problemOf(err)
	if p.GetStatus() == http.StatusInternalServerError {
		s.log.Error("api "+name, "request", requestID(ctx), "err", err)
	}
	return p
}

// list returns v, but never nil: an empty list is [] in JSON.
func list[T any](v []T) []T {
	if v == nil {
		return []T{}
	}
	return v
}

func withKey[T any](ctx context.Context, in *keyParam, fn func(context.Context, partition.Key) (T, error)) (T, error) {
	k, err := in.parse()
	if err != nil {
		var zero T
		return zero, err
	}
	return fn(ctx, k)
}

func (s *Server) query(ctx context.Context, in *queryParams) (Answer, error) {
	q, err := in.query()
	if err != nil {
		return Answer{}, err
	}
	a, err := s.peer.Query(ctx, q)
	a.Hits, a.Coverage.Missing = list(a.Hits), list(a.Coverage.Missing)
	return a, err
}

type seedInput struct {
	ContentType string `header:"Content-Type" doc:"application/json or text/plain"`
	RawBody     []byte
}

func (s *Server) seedRoute() {
	op := operation(http.MethodPost, "seeds", "Give the swarm Keys to crawl")
	op.MaxBodyBytes = maxSeedBytes
	op.BodyReadTimeout = readTimeout
	op.Errors = append(op.Errors, http.StatusBadRequest, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType)
	schema := s.api.OpenAPI().Components.Schemas.Schema(typeOf[seedBody](), true, "")
	op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/json": {Schema: schema},
		"text/plain": {Schema: &huma.Schema{Type: huma.TypeString,
			Description: "one Key or URL a line; # begins a comment"}},
	}}
	op.SkipValidateBody = true // parseSeeds validates both forms
	huma.Register(s.api, op, func(ctx context.Context, in *seedInput) (*reply[seedList], error) {
		ctx, cancel := context.WithTimeout(ctx, s.timeout)
		defer cancel()
		texts, again, err := parseSeeds(in.ContentType, in.RawBody)
		if err != nil {
			return nil, s.problem(ctx, "seeds", err)
		}
		answers, err := Seed(ctx, s.peer, texts)
		if err != nil {
			return nil, s.problem(ctx, "seeds", err)
		}
		if again {
			s.lookAgain(ctx, answers)
		}
		return &reply[seedList]{seedList{answers}}, nil
	})
}

// lookAgain makes the swarm look now at the seeds that it knows, and puts the result into their
// answers.
func (s *Server) lookAgain(ctx context.Context, answers []SeedAnswer) {
	for i := range answers {
		a := &answers[i]
		if a.Answer != "known" {
			continue
		}
		a.Answer, a.Reason = "again", ""
		k, err := parseKey(a.Key)
		if err == nil {
			err = s.peer.Again(ctx, k)
		}
		switch {
		case err == nil:
		case errors.Is(err, ErrUnavailable), ctx.Err() != nil:
			a.Answer, a.Reason = "busy", err.Error()
		default:
			a.Answer, a.Reason = "refused", err.Error()
		}
	}
}

// Seed gives p the seeds as typed and returns one answer for each, in order. A text that is no
// Key is refused and does not affect the others.
func Seed(ctx context.Context, p Peer, texts []string) ([]SeedAnswer, error) {
	answers := make([]SeedAnswer, len(texts))
	keys, places := make([]partition.Key, 0, len(texts)), make([]int, 0, len(texts))
	for i, text := range texts {
		k, err := parseKey(text)
		if err != nil {
			if len(text) > maxKeyText {
				text = strings.ToValidUTF8(text[:maxKeyText], "")
			}
			answers[i] = SeedAnswer{Key: text, Answer: "refused", Reason: err.Error()}
			continue
		}
		keys, places = append(keys, k), append(places, i)
	}
	if len(keys) == 0 {
		return answers, nil
	}
	got, err := p.Complete().Seed(ctx, keys)
	if err != nil {
		return nil, err
	}
	if len(got) != len(keys) {
		return nil, fmt.Errorf("seed: %d answers to %d keys", len(got), len(keys))
	}
	for i, a := range got {
		answers[places[i]] = a
	}
	return answers, nil
}

func (s *Server) mapRoute() {
	op := operation(http.MethodGet, "map", "Where the members are and what they own, GeoJSON")
	op.Responses = map[string]*huma.Response{"200": {
		Description: "GeoJSON", Content: map[string]*huma.MediaType{"application/geo+json": {}},
	}}
	type geo struct {
		ContentType string `header:"Content-Type"`
		Body        []byte
	}
	huma.Register(s.api, op, func(ctx context.Context, _ *none) (*geo, error) {
		ctx, cancel := context.WithTimeout(ctx, s.timeout)
		defer cancel()
		v, err := s.peer.Map(ctx)
		if err == nil && !json.Valid(v) {
			err = fmt.Errorf("map: %d bytes that are not JSON", len(v))
		}
		if err != nil {
			return nil, s.problem(ctx, "map", err)
		}
		return &geo{"application/geo+json", safetext.JSON(v)}, nil
	})
}
