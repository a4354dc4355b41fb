package acl_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// book holds what users have published and subscribed to, by their public keys.
type book struct {
	mu   sync.Mutex
	said map[string]map[string]bool
}

func (b *book) note(key, verb, subject string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.said[key] == nil {
		b.said[key] = map[string]bool{}
	}
	b.said[key][verb+" "+subject] = true
}

// of returns what a user has published (verb PUB) or subscribed to (SUB).
func (b *book) of(key, verb string) (subjects []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range b.said[key] {
		if subject, ok := strings.CutPrefix(line, verb+" "); ok {
			subjects = append(subjects, subject)
		}
	}
	return subjects
}

// relay stands between programs and a server, and writes down what they ask of it. It returns the URL to connect to.
func relay(t *testing.T, url string, b *book) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var conns sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		conns.Wait()
	})
	conns.Go(func() {
		for {
			program, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", strings.TrimPrefix(url, "nats://"))
			if err != nil {
				_ = program.Close()
				continue
			}
			conns.Go(func() {
				_, _ = io.Copy(program, server) // either end may close first
				_ = program.Close()
			})
			conns.Go(func() {
				overhear(io.TeeReader(program, server), b)
				_ = server.Close()
			})
		}
	})
	return "nats://" + l.Addr().String()
}

// overhear reads what a program says to its server, until it ends.
func overhear(program io.Reader, b *book) {
	r, key := bufio.NewReader(program), ""
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		words := strings.Fields(rest)
		switch verb {
		case "CONNECT":
			var who struct{ NKey string }
			_ = json.Unmarshal([]byte(rest), &who) // a program without a key is nobody
			key = who.NKey
		case "SUB":
			b.note(key, "SUB", words[0])
		case "PUB", "HPUB":
			b.note(key, "PUB", words[0])
			size, err := strconv.Atoi(words[len(words)-1])
			if err != nil {
				return
			}
			if _, err := r.Discard(size + len("\r\n")); err != nil {
				return
			}
		}
	}
}
