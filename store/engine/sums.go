package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	pebblerecord "github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/echo-node/echo-node/store"
)

// Pebble's tables have a checksum for each block. Its manifest and its write-ahead log end where a
// record cannot be read, as after a crash. A changed byte would look like the end of the file, and
// everything behind it would be lost without an error. Therefore Close writes the sums of those
// files, and Open compares them. They are removed before anything is written. After a crash there
// are no sums; then only the manifest is checked, for an unreadable record in its middle.
//
// If the names of the files differ from the names in the sums, another program changed the
// directory. This does not count as damage.
const (
	sumsName = "sums.json"
	maxSums  = 1 << 20
)

type fileSum struct {
	Size int64  `json:"size"`
	Sum  uint64 `json:"xxh64"`
}

// summed reports whether name is a file of Pebble that has no checksum of its whole content.
func summed(name string) bool {
	return strings.HasPrefix(name, "MANIFEST-") || strings.HasPrefix(name, "OPTIONS-") ||
		strings.HasSuffix(name, ".log")
}

// sumUp returns the sums of those files in dir for which summed is true.
func sumUp(disk vfs.FS, dir string) (map[string]fileSum, error) {
	names, err := disk.List(dir)
	if err != nil {
		return nil, err
	}
	out := map[string]fileSum{}
	for _, name := range names {
		if !summed(name) {
			continue
		}
		f, err := disk.Open(disk.PathJoin(dir, name), vfs.SequentialReadsOption)
		if err != nil {
			return nil, err
		}
		h := xxhash.New()
		n, err := io.Copy(h, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		out[name] = fileSum{Size: n, Sum: h.Sum64()}
	}
	return out, nil
}

// writeSums is the last step of Close.
func writeSums(disk vfs.FS, dir string) error {
	sums, err := sumUp(disk, DBDir(disk, dir))
	if err != nil {
		return err
	}
	b, err := Summed(sums)
	if err != nil {
		return err
	}
	return replaceSynced(disk, dir, sumsName, b)
}

// Summed returns v as one line of JSON, followed by a line with its xxHash64. ReadSummed detects
// damage in such a file.
func Summed(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(b, "\n%016x\n", xxhash.Sum64(b)), nil
}

// ReadSummed decodes the output of Summed into v. It returns false when b is damaged.
func ReadSummed(b []byte, v any) bool {
	b, own, _ := bytes.Cut(b, []byte{'\n'})
	return string(own) == fmt.Sprintf("%016x\n", xxhash.Sum64(b)) && json.Unmarshal(b, v) == nil
}

// CheckSums returns a *DamageError when a manifest or a log is not as Close left it.
func CheckSums(disk vfs.FS, dir string) error {
	b, err := readSmall(disk, disk.PathJoin(dir, sumsName), maxSums)
	if errors.Is(err, fs.ErrNotExist) {
		return checkManifest(disk, dir)
	}
	if err != nil {
		return fmt.Errorf("store: open %s: %w", dir, err)
	}
	var was map[string]fileSum
	if !ReadSummed(b, &was) {
		return checkManifest(disk, dir) // the sums themselves are damaged
	}
	is, err := sumUp(disk, DBDir(disk, dir))
	if err != nil {
		return fmt.Errorf("store: open %s: %w", dir, err)
	}
	names := slices.Sorted(maps.Keys(was))
	if !slices.Equal(names, slices.Sorted(maps.Keys(is))) {
		return checkManifest(disk, dir)
	}
	for _, name := range names {
		if is[name] != was[name] {
			return &store.DamageError{Dir: dir, Final: true, File: "pebble/" + name,
				Why: fmt.Errorf("it was left with %d bytes of sum %016x, and has %d of sum %016x",
					was[name].Size, was[name].Sum, is[name].Size, is[name].Sum)}
		}
	}
	return nil
}

// dropSums removes the sums before anything is written.
func dropSums(disk vfs.FS, dir string) error {
	err := disk.Remove(disk.PathJoin(dir, sumsName))
	if err == nil {
		err = SyncDir(disk, dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// checkManifest finds an unreadable record in the manifest in use that is not its last record. A
// crash leaves an unfinished end; a hole in the middle is damage.
func checkManifest(disk vfs.FS, dir string) error {
	db := DBDir(disk, dir)
	names, err := disk.List(db)
	if err != nil {
		return fmt.Errorf("store: open %s: %w", dir, err)
	}
	for _, name := range names {
		// marker.manifest.NUMBER.MANIFEST-NUMBER names the manifest in use.
		at := strings.Index(name, ".MANIFEST-")
		if !strings.HasPrefix(name, "marker.manifest.") || at < 0 {
			continue
		}
		manifest := name[at+1:]
		b, err := readSmall(disk, disk.PathJoin(db, manifest), 1<<30)
		if errors.Is(err, fs.ErrNotExist) {
			continue // an older marker
		}
		if err != nil {
			return fmt.Errorf("store: open %s: %w", dir, err)
		}
		if at, why := badRecord(b); why != nil {
			return &store.DamageError{Dir: dir, Final: true, File: "pebble/" + manifest,
				Why: fmt.Errorf("at byte %d of %d: %w", at, len(b), why)}
		}
	}
	return nil
}

// recordBlock is the size of the blocks that record files are made of.
const recordBlock = 32 << 10

// badRecord finds an unreadable record that a readable one follows.
func badRecord(b []byte) (at int64, why error) {
	r := pebblerecord.NewReader(strings.NewReader(string(b)), 0)
	for {
		next, err := r.Next()
		if err == nil {
			_, err = io.Copy(io.Discard, next)
		}
		if errors.Is(err, io.EOF) {
			return 0, nil
		}
		if err == nil {
			continue
		}
		at, why = r.Offset(), err
		// Readable records behind it prove that it was not the end.
		for from := at + 1; from < int64(len(b)); from++ {
			if whole(b[from:], from) {
				return at, why
			}
		}
		return 0, nil
	}
}

// whole reports whether b, which starts at byte from of the file, begins with a readable chunk of a
// record file.
func whole(b []byte, from int64) bool {
	const header = 7 // sum, length, kind
	if len(b) < header || recordBlock-int(from%recordBlock) < header {
		return false
	}
	length, kind := int(b[4])|int(b[5])<<8, b[6]
	if length == 0 || kind < 1 || kind > 4 || len(b) < header+length {
		return false
	}
	return chunkSum(b[6:header+length]) == uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16|uint32(b[3])<<24
}

// chunkSum is the checksum of a chunk of a record file: CRC-32C, rotated, plus a constant.
func chunkSum(b []byte) uint32 {
	c := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return (c>>15 | c<<17) + 0xa282ead8
}
