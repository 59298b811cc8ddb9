package service

import "errors"

// Access is who may read something.
type Access string

// The values of Access; "" = not known.
const (
	Open     Access = "open"
	Token    Access = "token"       // only with a credential
	Disabled Access = "disabled"    // the server says so, or forbids it
	Silent   Access = "silent"      // 200 with an empty list, although the server says it has posts
	Absent   Access = "unsupported" // no such endpoint
)

// Doubt is a question of a probe that stayed open.
type Doubt struct {
	What string `json:"what"`
	Why  Word   `json:"why"`
}

// ErrVersion means that another version wrote the bytes: probe again.
var ErrVersion = errors.New("another version")

// AccessOf returns the Access that a response shows, "" = unknown. No error means Open.
func AccessOf(err error) Access {
	switch WordOf(err) {
	case "":
		if err == nil {
			return Open
		}
	case NeedsToken:
		return Token
	case Closed:
		return Disabled
	case Gone, Unsupported:
		return Absent
	}
	return ""
}
