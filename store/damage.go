package store

import (
	"fmt"
	"path/filepath"
	"strings"
)

// DamageError reports a file of the store that does not contain what was written to it. It wraps
// ErrDamaged.
type DamageError struct {
	Dir  string // of the store
	File string // inside it; "" when Pebble names none
	Why  error
	// Final means that the store cannot be opened, not even for repair.
	Final bool
}

func (e *DamageError) Error() string {
	file := e.Dir
	if e.File != "" {
		file = filepath.Join(e.Dir, e.File)
	}
	if e.Final {
		return fmt.Sprintf("%s is damaged: %v; nothing was changed: restore a backup to an empty directory, or move this one away and join again", file, firstLine(e.Why))
	}
	return fmt.Sprintf("%s is damaged: %v", file, firstLine(e.Why))
}

// Unwrap returns ErrDamaged and the cause.
func (e *DamageError) Unwrap() []error { return []error{ErrDamaged, e.Why} }

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
