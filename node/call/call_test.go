package call

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/store"
)

// A long text of angle brackets fits a frame.
func TestPlainJSON(t *testing.T) {
	r := store.Record{Text: strings.Repeat("<&>", 1000)}
	b, err := Plain(r)
	if err != nil || len(b) > 4000 || b[len(b)-1] != '}' {
		t.Fatal(len(b), err)
	}
	var back store.Record
	if err := json.Unmarshal(b, &back); err != nil || back.Text != r.Text {
		t.Error(err)
	}
}
