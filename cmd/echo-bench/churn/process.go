package churn

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// member is one peer of a fleet through all its lives.
type member struct {
	fleet *fleet
	spec  Spec
	from  netip.Addr

	mu    sync.Mutex
	id    string // from its first hello; the same in every life
	life  *life  // nil while it is down
	sum   status // counts of ended lives
	last  status // of the present life, or the last one
	heard time.Time
	cpu   time.Duration // processor time of its ended lives
	err   error         // why a life ended by itself
}

// life is one process.
type life struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	log     *os.File
	answers chan answer
	done    chan struct{} // closed when the process is gone
	wanted  bool          // we ended it; guarded by member.mu
}

// start begins a new life. The process has not sent hello yet when start returns.
func (m *member) start() error {
	spec := m.spec
	spec.Cut = m.fleet.cutOf(m)
	spec.Join = m.fleet.joinOf(m)
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(m.fleet.dir, 0o700); err != nil {
		return err
	}
	args := append(append([]string(nil), m.fleet.o.Program[1:]...), "--spec", string(text))
	l := &life{cmd: exec.Command(m.fleet.o.Program[0], args...), answers: make(chan answer, 4),
		done: make(chan struct{})}
	if l.log, err = os.OpenFile(filepath.Join(m.fleet.dir, spec.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY,
		0o600); err != nil {
		return err
	}
	l.cmd.Stderr = l.log
	if l.stdin, err = l.cmd.StdinPipe(); err != nil {
		return errors.Join(err, l.log.Close())
	}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		return errors.Join(err, l.log.Close())
	}
	if err := l.cmd.Start(); err != nil {
		return errors.Join(err, l.log.Close())
	}
	m.mu.Lock()
	m.life = l
	m.last = status{}
	m.mu.Unlock()
	go m.listen(l, out)
	return nil
}

// listen reads the words of a life until its end, and then cleans up.
func (m *member) listen(l *life, out io.Reader) {
	heardErr := lines(out, func(w word) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		switch {
		case w.Hello != nil:
			m.id = w.Hello.ID
		case w.Status != nil:
			m.last, m.heard = *w.Status, time.Now()
		case w.Answer != nil:
			select {
			case l.answers <- *w.Answer:
			default: // no caller waits for it any more
			}
		}
		return nil
	})
	err := errors.Join(heardErr, l.cmd.Wait(), l.log.Close())
	m.mu.Lock()
	defer m.mu.Unlock()
	if !l.wanted {
		m.err = fmt.Errorf("%s ended by itself: %v; see %s.log", m.spec.Name, err, m.spec.Name)
	}
	m.cpu += l.cmd.ProcessState.UserTime() + l.cmd.ProcessState.SystemTime()
	m.sum = m.sum.plus(m.last)
	m.last.LinksOut, m.last.LinksIn, m.last.BytesOut = 0, 0, 0
	m.life = nil
	close(l.done)
}

// plus adds the counts that start at zero in each process.
func (s status) plus(o status) status {
	s.LinksOut, s.LinksIn, s.BytesOut = s.LinksOut+o.LinksOut, s.LinksIn+o.LinksIn, s.BytesOut+o.BytesOut
	return s
}

// lives reports whether it runs, even if it has sent no status yet.
func (m *member) lives() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.life != nil
}

// up reports whether it runs and has sent a status in this life.
func (m *member) up() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.life != nil && m.last.Peers > 0
}

// present returns its last status, and how long ago that was.
func (m *member) present() (status, time.Duration, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last, time.Since(m.heard), m.life != nil && m.last.Peers > 0
}

// total returns what it sent and received in all its lives.
func (m *member) total() status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sum.plus(m.last)
}

func (m *member) failure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

func (m *member) name() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.id
}

// take returns the present life, marked as ended by us, or nil when there is none.
func (m *member) take() *life {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.life != nil {
		m.life.wanted = true
	}
	return m.life
}

// kill is kill -9. It returns when the process is gone.
func (m *member) kill() {
	if l := m.take(); l != nil {
		_ = l.cmd.Process.Kill() // it may have ended just now
		<-l.done
	}
}

// stopTime is how long a peer may take to end after a stop.
const stopTime = 20 * time.Second

// stop ends the member's input, which makes it end, and waits a limited time.
func (m *member) stop() {
	l := m.take()
	if l == nil {
		return
	}
	_ = l.stdin.Close() // it may have ended just now
	select {
	case <-l.done:
	case <-time.After(stopTime):
		m.kill()
	}
}

// order sends an order; a member that is down misses it.
func (m *member) order(o order) (*life, error) {
	m.mu.Lock()
	l := m.life
	m.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("%s is down", m.spec.Name)
	}
	b, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	_, err = l.stdin.Write(append(b, '\n'))
	return l, err
}

// ask sends an order and waits for its answer.
func (m *member) ask(o order, limit time.Duration) (answer, error) {
	l, err := m.order(o)
	if err != nil {
		return answer{}, err
	}
	deadline := time.After(limit)
	for {
		select {
		case a := <-l.answers:
			if a.To != o.Do {
				continue
			}
			if a.Error != "" {
				return a, fmt.Errorf("%s: %s: %s", m.spec.Name, o.Do, a.Error)
			}
			return a, nil
		case <-l.done:
			return answer{}, fmt.Errorf("%s ended before it answered %s", m.spec.Name, o.Do)
		case <-deadline:
			return answer{}, fmt.Errorf("%s does not answer %s in %v", m.spec.Name, o.Do, limit)
		}
	}
}
