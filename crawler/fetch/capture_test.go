package fetch

import (
	"net/http"
	"strings"
	"testing"
)

// A capture is exported and copied to peers. A credential is only for the site.
func TestCapturesHoldNoCredential(t *testing.T) {
	var got http.Header
	url := server(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Clone() })
	c := client(t, Options{})
	resp, err := c.Get(t.Context(), Request{URL: url, Header: map[string]string{
		"Authorization": "Bearer s3cret", "Cookie": "session=s3cret", "Proxy-Authorization": "Basic s3cret",
		"X-Kept": "yes",
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Get("Authorization") != "Bearer s3cret" {
		t.Errorf("not sent: %v", got)
	}
	kept := string(resp.Capture().Request)
	if strings.Contains(kept, "s3cret") || strings.Contains(kept, "Authorization") ||
		!strings.Contains(kept, "X-Kept: yes") {
		t.Errorf("kept: %q", kept)
	}
	if again := string(resp.Capture().Request); again != kept || resp.request.Header.Get("Authorization") == "" {
		t.Errorf("the request itself was changed: %q", again)
	}
}
