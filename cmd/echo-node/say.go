package main

import (
	"fmt"
	"io"
	"reflect"

	"github.com/echo-node/echo-node/node/safetext"
)

// oneLine is a stranger's text in one line that drives no terminal.
func oneLine(s string) string { return safetext.Line(s) }

// say prints a line for people. Each text among args is shown in one line, so that no
// stranger's text can look like a line of ours.
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
