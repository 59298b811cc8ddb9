package service

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"

	"github.com/echo-node/echo-node/crawler/fetch"
)

// Credential is a bearer token of one server. The token is behind a function. So no formatting,
// logging or encoding of it, or of a value that contains it, shows more than its name. The zero
// value is no credential.
type Credential struct {
	name   string
	bearer func() string
}

// maxToken is the longest token; Mastodon's have 43 bytes.
const maxToken = 4 << 10

// NewCredential returns a credential. The operator chooses the name, for budgets and logs.
func NewCredential(name, token string) (Credential, error) {
	token = strings.TrimSpace(token)
	if token == "" || len(token) > maxToken ||
		strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return Credential{}, errors.New("service: credential: a token is 1 to 4096 visible ASCII characters")
	}
	return Credential{name, func() string { return token }}, nil
}

// Sign adds c to a request and replaces any other credential. Do not print a signed request.
func (c Credential) Sign(r *fetch.Request) {
	h := maps.Clone(r.Header)
	if h == nil {
		h = map[string]string{}
	}
	if delete(h, "Authorization"); c.Set() {
		h["Authorization"] = "Bearer " + c.bearer()
	}
	r.Header = h
}

// Sum returns a keyed hash that distinguishes tokens. The salt is secret, so the sum does not
// reveal the token. "" = there is no token.
func (c Credential) Sum(salt []byte) string {
	if !c.Set() {
		return ""
	}
	m := hmac.New(sha256.New, salt)
	_, _ = m.Write([]byte(c.bearer())) // never fails
	return hex.EncodeToString(m.Sum(nil)[:8])
}

// Set reports whether there is a token.
func (c Credential) Set() bool { return c.bearer != nil }

// Name returns the operator's name for the credential.
func (c Credential) Name() string { return c.name }

// String returns the name only.
func (c Credential) String() string {
	if !c.Set() {
		return "no credential"
	}
	return fmt.Sprintf("credential %q (redacted)", c.name)
}

// GoString returns String.
func (c Credential) GoString() string { return c.String() }

// Format prints String for every verb.
func (c Credential) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(c.String())) }

// LogValue returns String, for log/slog.
func (c Credential) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText returns String, for JSON, XML and flags.
func (c Credential) MarshalText() ([]byte, error) { return []byte(c.String()), nil }
