package strictjson_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/echo-node/echo-node/partition/strictjson"
)

type row struct {
	At    time.Time            `json:"at"`
	Maybe *time.Time           `json:"maybe"`
	Named map[string]time.Time `json:"named"`
	Rows  []row                `json:"rows"`
	Next  *row                 `json:"next"`
	Text  string               `json:"text"`
	Any   any                  `json:"any"`
	Bytes []byte               `json:"bytes"`
}

// A time at any depth that cannot be written again is an error. Text that looks like one is not.
func TestTimesThatCannotBeWrittenAreErrors(t *testing.T) {
	const odd, end = `"2026-01-02T03:04:05-24:59"`, `"9999-12-31T23:59:59-23:59"`
	for text, want := range map[string]bool{
		`{}`:                                        true,
		`{"at":"2026-01-02T03:04:05Z"}`:             true,
		`{"at":"2026-01-02T03:04:05+05:30"}`:        true,
		`{"text":` + odd + `}`:                      true,
		`{"any":{"a":[` + odd + `]}}`:               true, // a text
		`{"at":` + odd + `}`:                        false,
		`{"maybe":` + end + `}`:                     false,
		`{"named":{"a":` + odd + `}}`:               false,
		`{"rows":[{},{"next":{"at":` + end + `}}]}`: false,
		`{"at":"0000-01-01T00:00:00+23:00"}`:        false,
		`{"at":1}`:                                  false,
	} {
		var r row
		if err := strictjson.Unmarshal([]byte(text), &r); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A time that was read can be written again, also in UTC.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"at":"2026-01-02T3:04:05,5Z","maybe":"9999-12-31T03:59:59-24:59","named":{"a":"0000-01-01T00:00:00+00:01"}}`))
	f.Add([]byte(`{"rows":[{"at":"2026-01-02T03:04:05+23:59","next":{"text":"-24:59"}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r row
		if strictjson.Unmarshal(b, &r) != nil {
			return
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
		r.At = r.At.UTC()
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
	})
}
