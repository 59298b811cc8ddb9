package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/echo-node/echo-node/crawler/fetch"
)

// At a socket in its data directory, a running peer does what only the owner of that directory
// may request. The API's token, or access on loopback, permits less. Each connection carries
// one request, as one line of JSON in each direction.
const (
	controlName    = "control.sock"
	controlVersion = 1
	controlWait    = 10 * time.Second // for a request to arrive, and for its response to be read
	maxControl     = 16 << 10         // bytes of a request or a response
)

type controlAsk struct {
	V      int    `json:"v"`
	Backup string `json:"backup"` // an absolute path that does not exist yet
}

type controlAnswer struct {
	V     int    `json:"v"`
	Error string `json:"error,omitempty"`
}

// serveControl serves requests until ctx ends, one after the other, and finishes the one that
// is running then. The directory belongs to this process, so a socket in it was left by a
// killed process. backup makes a backup.
func serveControl(ctx context.Context, dir string, backup func(dir string) error, log *slog.Logger) error {
	at := filepath.Join(dir, controlName)
	ln, err := listenControl(at)
	if err != nil {
		// The path may be too long, or the file system may not support sockets. The peer works
		// without it.
		log.Warn("no backups by command while this peer runs", "err", err)
		return nil
	}
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
	defer ln.Close()
	for {
		conn, err := ln.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil { // file descriptors may be used up for a while
			log.Warn("a question at "+controlName, "err", err)
			if fetch.Sleep(ctx, time.Second) != nil {
				return nil
			}
			continue
		}
		if err := answerControl(ctx, conn, backup, log); err != nil {
			log.Warn("a question at "+controlName, "err", err)
		}
	}
}

func listenControl(at string) (net.Listener, error) {
	if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	ln, err := net.Listen("unix", at)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(at, 0o600); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return ln, nil
}

func answerControl(ctx context.Context, conn net.Conn, backup func(dir string) error, log *slog.Logger) error {
	defer conn.Close()
	// At the end, do not wait for a client without a request.
	heard := context.AfterFunc(ctx, func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(controlWait)); err != nil {
		return err
	}
	var ask controlAsk
	err := readControl(conn, &ask)
	switch {
	case !heard():
		return ctx.Err()
	case err != nil:
	case ask.V != controlVersion:
		err = fmt.Errorf("the question has version %d, this peer knows %d: use the same version of the program", ask.V,
			controlVersion)
	case !filepath.IsAbs(ask.Backup):
		err = fmt.Errorf("%q is no absolute path", ask.Backup)
	default:
		log.Info("a backup is asked for", "dir", ask.Backup)
		err = backup(ask.Backup)
	}
	answer := controlAnswer{V: controlVersion}
	if err != nil {
		answer.Error = err.Error()
	}
	if err := conn.SetDeadline(time.Now().Add(controlWait)); err != nil {
		return err
	}
	return errors.Join(err, json.NewEncoder(conn).Encode(answer))
}

func readControl(r io.Reader, v any) error {
	line, err := bufio.NewReader(io.LimitReader(r, maxControl)).ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("a line of at most %d bytes was to come: %w", maxControl, err)
	}
	return json.Unmarshal(line, v)
}

// askBackup makes the peer that runs on the data directory make a backup, and waits until it is
// complete. When ctx ends it stops waiting, but the peer continues. It returns errNoControl
// when no peer listens.
func askBackup(ctx context.Context, data, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", filepath.Join(data, controlName))
	if err != nil {
		return fmt.Errorf("%w: %w", errNoControl, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := json.NewEncoder(conn).Encode(controlAsk{V: controlVersion, Backup: dir}); err != nil {
		return err
	}
	var answer controlAnswer
	if err := readControl(conn, &answer); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("the peer ended before the backup was whole, or gave no answer: %w", err)
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	return nil
}

var errNoControl = errors.New("nothing listens at its " + controlName)
