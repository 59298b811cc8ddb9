// Package diskuse measures how much of the disk a directory takes, as du does.
package diskuse

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// Allocated returns the disk space of the files below dir. A file with several links counts once.
func Allocated(dir string) (sum int64, err error) {
	seen := map[fileID]bool{}
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return ignoreGone(err)
		}
		info, err := d.Info()
		if err != nil {
			return ignoreGone(err)
		}
		bytes, id, shared := onDisk(info)
		if shared && !d.IsDir() {
			if seen[id] {
				return nil
			}
			seen[id] = true
		}
		sum += bytes
		return nil
	})
	return sum, err
}

// ignoreGone drops the error of a missing file: files come and go while a directory is walked.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
