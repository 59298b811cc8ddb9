package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// On loopback every user of the machine reaches the API. Who may change something shows
// the operator's token. A peer makes a new one at each start, so that the token of a peer
// that has ended, sent to a stranger who took its port, is worth nothing. It is in two
// kinds of files, mode 0600: api.token in the data directory, and one named for the API's
// address in the user's own directories, where the commands find it without a flag.
const (
	tokenName     = "api.token"
	tokenDir      = "echo-node"
	maxTokenBytes = 4096 // read of a file with a token
)

// operatorToken is a peer's token and where it is written.
type operatorToken struct {
	text  string
	files []string
}

// publishToken makes a token for the API at addr. Without a directory of the user's own
// the commands need --api-token-file: found says so.
func publishToken(data, addr string) (t *operatorToken, found bool, err error) {
	t = &operatorToken{text: rand.Text() + rand.Text()}
	if err := t.write(filepath.Join(data, tokenName)); err != nil {
		return nil, false, fmt.Errorf("api token: %w", err)
	}
	for _, dir := range tokenPlaces() {
		if private(dir) != nil {
			continue
		}
		for _, name := range tokenFiles(addr) {
			found = t.write(filepath.Join(dir, name)) == nil || found
		}
	}
	return t, found, nil
}

// write writes the token whole or not at all.
func (t *operatorToken) write(name string) error {
	tmp, err := os.CreateTemp(filepath.Dir(name), ".token-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = tmp.WriteString(t.text + "\n")
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	t.files = append(t.files, name)
	return nil
}

// remove takes the files away but for those that a later peer wrote. A file that stays is
// of a token that is worth nothing.
func (t *operatorToken) remove(log *slog.Logger) {
	for _, name := range t.files {
		text, err := readToken(name)
		if err == nil && text == t.text {
			err = os.Remove(name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.Warn("the API's token cannot be removed", "err", err)
		}
	}
}

// tokenPlaces are the directories of this user alone, the one that ends with the session
// first. A peer and a command may be of different sessions, so both are used.
func tokenPlaces() []string {
	var dirs []string
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		dirs = append(dirs, filepath.Join(dir, tokenDir))
	}
	if dir, err := os.UserCacheDir(); err == nil {
		dirs = append(dirs, filepath.Join(dir, tokenDir))
	}
	return slices.Compact(dirs)
}

// private makes dir, or checks that it is a directory of this user alone.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir() || !ownedByUs(info):
		return fmt.Errorf("%s is no directory of this user", dir)
	case info.Mode().Perm()&0o077 != 0:
		return os.Chmod(dir, 0o700)
	}
	return nil
}

// tokenFiles are the names of the files for the API at addr, HOST:PORT or a URL: none when
// that is not on loopback, and of a name both addresses that it may stand for.
func tokenFiles(addr string) []string {
	if _, rest, ok := strings.Cut(addr, "://"); ok {
		addr = strings.TrimSuffix(rest, "/")
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil
	}
	hosts := []string{host}
	if strings.EqualFold(host, "localhost") {
		hosts = []string{"127.0.0.1", "::1"}
	}
	var names []string
	for _, h := range hosts {
		if ip, err := netip.ParseAddr(h); err == nil && ip.Unmap().IsLoopback() {
			names = append(names, strings.ReplaceAll(ip.Unmap().String(), ":", "_")+"-"+port+".token")
		}
	}
	return names
}

// findToken is the token of the peer of this user whose API is at addr, or "".
func findToken(addr string) string {
	for _, dir := range tokenPlaces() {
		for _, name := range tokenFiles(addr) {
			if text, err := readToken(filepath.Join(dir, name)); err == nil {
				return text
			}
		}
	}
	return ""
}

// readToken reads a file that only this user can have written.
func readToken(name string) (string, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || !ownedByUs(info) || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s is no file of this user alone", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // read only
	b, err := io.ReadAll(io.LimitReader(f, maxTokenBytes))
	return strings.TrimSpace(string(b)), err
}
