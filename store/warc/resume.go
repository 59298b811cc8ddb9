package warc

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxHead is the maximum size, in bytes, of the named fields of one record that this package
// writes.
const maxHead = 64 << 10

// Resume tells w what the file contains so far, so that w does not write those bodies again. r is
// the whole file so far, as a Writer wrote it. Resume reads all of it, at about 100 MB a second,
// and remembers at most MaxPayloads bodies.
func (w *Writer) Resume(r io.Reader) error {
	in := bufio.NewReaderSize(r, 1<<20) // a ByteReader: gzip reads no byte behind a member
	z, err := gzip.NewReader(in)
	for ; err == nil; err = z.Reset(in) {
		z.Multistream(false)
		if err := w.note(z); err != nil {
			return fmt.Errorf("warc: what is there: %w", err)
		}
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("warc: what is there: %w", err)
	}
	return nil
}

// note reads one record.
func (w *Writer) note(z io.Reader) error {
	head := bufio.NewReaderSize(z, maxHead)
	fields := map[string]string{}
	for size := 0; ; {
		b, err := head.ReadSlice('\n')
		if size += len(b); err != nil || size > maxHead {
			return errors.Join(errors.New("no record of this program"), err)
		}
		line := strings.TrimSuffix(string(b), "\r\n")
		if line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ": ")
		fields[name] = value
	}
	if fields["WARC-Type"] == "response" && fields["WARC-Truncated"] == "" &&
		fields["WARC-Payload-Digest"] != emptyDigest {
		w.learn(payload{strings.Trim(fields["WARC-Record-ID"], "<>"), fields["WARC-Target-URI"], fields["WARC-Date"],
			fields["WARC-Payload-Digest"]})
	}
	_, err := io.Copy(io.Discard, head)
	return err
}

// emptyDigest is the digest of an empty body, which never counts as a duplicate.
const emptyDigest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
