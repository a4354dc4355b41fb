package worker

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// proxy is a way to the server that can be cut without either side being told.
type proxy struct {
	listener net.Listener
	cut      atomic.Bool
	clock    atomic.Int64 // how far the server's clock is ahead, as who is behind the proxy sees it
	mu       sync.Mutex
	conns    []net.Conn
}

func newProxy(t *testing.T, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: l}
	t.Cleanup(p.close)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", to)
			if err != nil {
				_ = c.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, c, s)
			p.mu.Unlock()
			go p.copy(c, s, true)
			go p.copy(s, c, false)
		}
	}()
	return p
}

// copy carries what is said over, or drops it while the way is cut.
func (p *proxy) copy(to, from net.Conn, down bool) {
	in := bufio.NewReaderSize(from, 32<<10)
	for {
		said, err := saying(in)
		if err != nil {
			_ = to.Close()
			return
		}
		if p.cut.Load() {
			continue
		}
		if ahead := p.clock.Load(); down && ahead != 0 {
			said = shifted(said, time.Duration(ahead))
		}
		if _, err := to.Write(said); err != nil {
			return
		}
	}
}

// saying reads one line of NATS's protocol with its payload.
func saying(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	words := strings.Fields(string(line))
	if len(words) == 0 || !slices.Contains([]string{"MSG", "HMSG", "PUB", "HPUB"}, words[0]) {
		return line, nil
	}
	size, err := strconv.Atoi(words[len(words)-1])
	if err != nil {
		return nil, err
	}
	payload := make([]byte, size+2)
	_, err = io.ReadFull(in, payload)
	return append(line, payload...), err
}

var (
	storedAt = regexp.MustCompile(`\b\d{19}\b`)
	toldAt   = regexp.MustCompile(`"ts":"[^"]+"`)
)

// shifted changes the times that a message tells: when it was stored, in its reply subject, and what the API says of
// now.
func shifted(said []byte, by time.Duration) []byte {
	line, payload, _ := bytes.Cut(said, []byte("\n"))
	line = storedAt.ReplaceAllFunc(line, func(ns []byte) []byte {
		at, _ := strconv.ParseInt(string(ns), 10, 64)
		return strconv.AppendInt(nil, at+int64(by), 10)
	})
	payload = toldAt.ReplaceAllFunc(payload, func(ts []byte) []byte {
		at, err := time.Parse(time.RFC3339Nano, string(ts[6:len(ts)-1]))
		if err != nil {
			return ts
		}
		moved := `"ts":"` + at.Add(by).Format(time.RFC3339Nano) + `"`
		if len(moved) != len(ts) {
			panic("whole minutes leave a time as long as it is")
		}
		return []byte(moved)
	})
	return slices.Concat(line, []byte("\n"), payload)
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
}
