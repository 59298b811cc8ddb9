package utf8text

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// For any declared character set and any buffer size, the output is UTF-8.
func FuzzValidReader(f *testing.F) {
	f.Add([]byte("a\xffb\xff\xfe\xe2\x82"), uint8(3))
	f.Fuzz(func(t *testing.T, body []byte, step uint8) {
		r := &validReader{from: bytes.NewReader(body)}
		var got []byte
		buf := make([]byte, 1+int(step))
		for {
			n, err := r.Read(buf)
			got = append(got, buf[:n]...)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if want := strings.ToValidUTF8(string(body), "\uFFFD"); string(got) != want {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}
