package main

import (
	"fmt"
	"io"
	"reflect"

	"github.com/echo-node/echo-node/node/safetext"
)

// oneLine returns a stranger's text in one line that cannot control a terminal.
func oneLine(s string) string { return safetext.Line(s) }

// say prints a line for people. Each text in args is reduced to one line, so no stranger's text
// can look like a separate line of ours.
func say(w io.Writer, format string, args ...any) {
	for i, a := range args {
		switch v := a.(type) {
		case error:
			args[i] = oneLine(v.Error())
		case fmt.Stringer:
			args[i] = oneLine(v.String())
		default:
			if t := reflect.ValueOf(a); t.Kind() == reflect.String {
				args[i] = oneLine(t.String())
			}
		}
	}
	fmt.Fprintf(w, format, args...)
}
