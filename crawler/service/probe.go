package service

import "errors"

// Access is who may read something.
type Access string

// Who may; "" = not known.
const (
	Open     Access = "open"
	Token    Access = "token"       // with a credential only
	Disabled Access = "disabled"    // the server says so, or forbids it
	Silent   Access = "silent"      // 200 with an empty list, where the server says it has posts
	Absent   Access = "unsupported" // no such endpoint
)

// Doubt is a question of a probe that was not answered.
type Doubt struct {
	What string `json:"what"`
	Why  Word   `json:"why"`
}

// ErrVersion says that bytes were written by another version: probe again.
var ErrVersion = errors.New("another version")

// AccessOf is what an answer says of who may, "" = nothing. No error is Open.
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
