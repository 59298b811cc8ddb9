package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestTrainLangSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"train-lang", exitUsage, "--data"},
		{"train-lang --data x", exitUsage, "--out or --evaluate"},
		{"train-lang --data x --out y --bits 25", exitUsage, "--bits is 10 to 19"},
		{"train-lang --data " + t.TempDir() + " --evaluate", exitFailed, "no files LANG.REGISTER.tsv.gz"},
	} {
		var out, talk bytes.Buffer
		if code := run(t.Context(), strings.Fields(c.args), &out, &talk); code != c.code ||
			!strings.Contains(talk.String(), c.want) {
			t.Errorf("%s: exit %d, %q, want %d and %q", c.args, code, talk.String(), c.code, c.want)
		}
	}
}
