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

// On loopback every user of the machine can reach the API. Changes need the operator's token. A
// peer makes a new token at each start. So the token of an ended peer is worthless, even if a
// command sends it to a stranger that took the peer's port. The token is in two kinds of files,
// mode 0600. One is api.token in the data directory. The other is named after the API's address
// and is in the user's own directories, where the commands find it without a flag.
const (
	tokenName     = "api.token"
	tokenDir      = "echo-node"
	maxTokenBytes = 4096 // read from a file with a token
)

// operatorToken is a peer's token with the files that contain it.
type operatorToken struct {
	text  string
	files []string
}

// publishToken makes a token for the API at addr. found is false if the user has no own
// directory; then the commands need --api-token-file.
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

// write writes a file with the token, complete or not at all.
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

// remove removes the files, except those that a later peer wrote. A file that stays contains a
// worthless token.
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

// tokenPlaces returns the directories that belong only to this user, first the one that ends
// with the session. A peer and a command may be in different sessions, so both are used.
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

// private makes dir, or checks that it is a directory that belongs only to this user.
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

// tokenFiles returns the names of the files for the API at addr, HOST:PORT or a URL. There are
// none when addr is not on loopback. For a host name there is one for each possible address.
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

// findToken returns the token of this user's peer whose API is at addr, or "".
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
