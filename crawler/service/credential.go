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

// Credential is a bearer token of one server. It has no printed form: the token
// is behind a function, so that no formatting, logging or encoding of it or of what holds it shows
// more than its name. The zero value is no credential.
type Credential struct {
	name   string
	bearer func() string
}

// maxToken is the longest token; Mastodon's have 43 bytes.
const maxToken = 4 << 10

// NewCredential is the credential of that name (the operator's own, for budgets and logs).
func NewCredential(name, token string) (Credential, error) {
	token = strings.TrimSpace(token)
	if token == "" || len(token) > maxToken ||
		strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return Credential{}, errors.New("service: credential: a token is 1 to 4096 visible ASCII characters")
	}
	return Credential{name, func() string { return token }}, nil
}

// Sign puts c into a request, in place of any other. A request so signed is not to be printed.
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

// Sum tells tokens apart. The salt is secret, so the token cannot be found from its sum. "" = there is no token.
func (c Credential) Sum(salt []byte) string {
	if !c.Set() {
		return ""
	}
	m := hmac.New(sha256.New, salt)
	_, _ = m.Write([]byte(c.bearer())) // never fails
	return hex.EncodeToString(m.Sum(nil)[:8])
}

// Set says whether there is one.
func (c Credential) Set() bool { return c.bearer != nil }

// Name is what the operator calls it.
func (c Credential) Name() string { return c.name }

// String is the name alone.
func (c Credential) String() string {
	if !c.Set() {
		return "no credential"
	}
	return fmt.Sprintf("credential %q (redacted)", c.name)
}

// GoString is String.
func (c Credential) GoString() string { return c.String() }

// Format prints String, whatever the verb.
func (c Credential) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(c.String())) }

// LogValue is String, for log/slog.
func (c Credential) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText is String, for JSON, XML and flags.
func (c Credential) MarshalText() ([]byte, error) { return []byte(c.String()), nil }
