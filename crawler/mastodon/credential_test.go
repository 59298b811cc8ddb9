package mastodon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/echo-node/echo-node/crawler/fetch"
	"github.com/echo-node/echo-node/crawler/service"
)

// A token cannot be printed, by itself or in any value, and is sent only to its server.
func TestCredentialsAreNotPrinted(t *testing.T) {
	cred, err := service.NewCredential("ana", "s3cret")
	if err != nil {
		t.Fatal(err)
	}
	var sent []string
	c, err := New(Options{Base: "https://m.test", Credential: cred,
		Do: func(_ context.Context, call service.Call) (*fetch.Response, error) {
			sent = append(sent, call.Request.URL+" "+call.Request.Header["Authorization"])
			return nil, errors.New("no network")
		}})
	if err != nil {
		t.Fatal(err)
	}
	_, fault := c.Lookup(context.Background(), "rui")
	if len(sent) != 1 || sent[0] != "https://m.test/api/v1/accounts/lookup?acct=rui Bearer s3cret" ||
		service.WordOf(fault) != service.Unreachable || !strings.Contains(fault.Error(), "no network") {
		t.Errorf("%q %v", sent, fault)
	}
	type holder struct{ hidden service.Credential }
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "cred", cred, "client", fmt.Sprint(c), "options", c.o.Credential)
	asJSON, _ := json.Marshal(struct{ C service.Credential }{cred})
	for _, text := range []string{
		fmt.Sprint(cred), fmt.Sprintf("%v %+v %#v %s %q %x %d", cred, cred, cred, cred, cred, cred, cred),
		fmt.Sprintf("%v %+v %#v", holder{cred}, holder{cred}, &holder{cred}),
		fmt.Sprintf("%+v %#v", c, *c), string(asJSON), log.String(), fault.Error(),
	} {
		if strings.Contains(text, "s3cret") || strings.Contains(text, "733363726574") {
			t.Errorf("printed: %s", text)
		}
	}
	for _, bad := range []string{"", " ", "a b", "a\nb", "é", strings.Repeat("x", 4097)} {
		if _, err := service.NewCredential("x", bad); err == nil {
			t.Errorf("%.20q is a token", bad)
		}
	}
	if _, err := New(Options{Base: "http://m.test", Credential: cred}); err == nil ||
		!strings.Contains(err.Error(), "plain http") || !strings.Contains(err.Error(), "no Do") {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"", "m.test", "ftp://m.test", "https://u:p@m.test", "https://m.test/x",
		"https://m.test?x"} {
		if _, err := New(Options{Base: bad, Do: c.o.Do}); err == nil {
			t.Errorf("%q is a base", bad)
		}
	}
}
