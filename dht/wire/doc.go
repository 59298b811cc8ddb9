// Package wire is the messages between peers and their framing.
package wire
