package kv_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
)

func writeFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// listening is a server on TCP, with a configuration of its own.
func listening(t testing.TB, conf string) *embedded.Server {
	t.Helper()
	return natstest.Start(t, func(o *embedded.Options) {
		o.Listen, o.ConfigFile = "127.0.0.1:0", writeFile(t, "nats.conf", conf)
	})
}

func TestConnectInEveryWay(t *testing.T) {
	t.Parallel()
	user, err := nkeys.CreateUser()
	require.NoError(t, err)
	public, err := user.PublicKey()
	require.NoError(t, err)
	seed, err := user.Seed()
	require.NoError(t, err)
	srv := listening(t, fmt.Sprintf(`authorization { users: [{user: u, password: "p@ss"}, {nkey: %s}] }`, public))
	token := listening(t, `authorization { token: secret }`)
	at := srv.URL()[len("nats://"):]
	context := writeFile(t, "ctx.json", fmt.Sprintf(`{"url": %q, "user": "u", "password": "p@ss"}`, srv.URL()))
	elsewhere := writeFile(t, "ctx.json", `{"url": "nats://127.0.0.1:1", "user": "u", "password": "p@ss"}`)
	for name, o := range map[string]kv.ConnectOptions{
		"user in URL":          {URL: "nats://u:p%40ss@" + at},
		"second of two":        {URL: "nats://127.0.0.1:1, nats://u:p%40ss@" + at},
		"nkey":                 {URL: srv.URL(), NKey: writeFile(t, "seed", string(seed))},
		"token in URL":         {URL: "nats://secret@" + token.URL()[len("nats://"):]},
		"context":              {Context: context},
		"context and own URL":  {Context: elsewhere, URL: srv.URL()},
		"in process":           {InProcess: natstest.Start(t).InProcess(), Name: "me"},
		"in process, URL too":  {InProcess: natstest.Start(t).InProcess(), URL: "nats://127.0.0.1:1"},
		"logger, nothing else": {InProcess: natstest.Start(t).InProcess(), Logger: slog.New(slog.DiscardHandler)},
	} {
		nc, err := kv.Connect(within(t, 2*time.Minute), o)
		require.NoError(t, err, name)
		require.NoError(t, nc.Flush(), name)
		nc.Close()
	}
}

func TestAConnectionThatFailsSaysWhatWasTried(t *testing.T) {
	t.Parallel()
	srv := listening(t, `authorization { user: u, password: p }`)
	at := srv.URL()[len("nats://"):]
	creds := writeFile(t, "creds", "nonsense")
	for name, c := range map[string]struct {
		o    kv.ConnectOptions
		code fault.Code
		says string
	}{
		"nobody there":    {kv.ConnectOptions{URL: "nats://u:topsecret@127.0.0.1:1"}, fault.NoConnection, "nats://127.0.0.1:1:"},
		"two of them":     {kv.ConnectOptions{URL: "nats://127.0.0.1:1,nats://127.0.0.1:2"}, fault.NoConnection, "nats://127.0.0.1:1,nats://127.0.0.1:2"},
		"wrong password":  {kv.ConnectOptions{URL: "nats://u:topsecret@" + at}, fault.Permission, at},
		"no such creds":   {kv.ConnectOptions{URL: srv.URL(), Creds: creds + ".absent"}, fault.InvalidConfig, "no such file"},
		"no such nkey":    {kv.ConnectOptions{URL: srv.URL(), NKey: creds + ".absent"}, fault.InvalidConfig, "absent"},
		"no such CA":      {kv.ConnectOptions{URL: srv.URL(), CA: creds + ".absent"}, fault.InvalidConfig, "absent"},
		"no such context": {kv.ConnectOptions{Context: creds + ".absent"}, fault.InvalidConfig, "absent"},
		"unnamed context": {kv.ConnectOptions{Context: "no-such-context-of-nats"}, fault.InvalidConfig, "no-such-context-of-nats"},
		"context, no server": {kv.ConnectOptions{Context: writeFile(t, "c.json", `{"url":"nats://127.0.0.1:1"}`)}, fault.NoConnection,
			"nats://127.0.0.1:1"},
	} {
		_, err := kv.Connect(within(t, 2*time.Minute), c.o)
		require.Equal(t, c.code, fault.CodeOf(err), "%s: %v", name, err)
		require.ErrorContains(t, err, c.says, name)
		require.NotContains(t, err.Error(), "topsecret", name)
	}
}

func TestConnectingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	require.NoError(t, err)
	defer silent.Close()
	began := time.Now()
	_, err = kv.Connect(within(t, 200*time.Millisecond), kv.ConnectOptions{URL: "nats://" + silent.Addr().String()})
	require.Equal(t, fault.NoConnection, fault.CodeOf(err))
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = kv.Connect(ended, kv.ConnectOptions{URL: "nats://" + silent.Addr().String()})
	require.Error(t, err)
	require.Less(t, time.Since(began), 5*time.Second, "which it would wait for by itself")
}

// lines is a log that tests may read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestAConnectionComesBackAndSaysSo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	srv, err := embedded.Start(embedded.Options{Dir: dir, Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	t.Cleanup(srv.Shutdown)
	var log lines
	nc, err := kv.Connect(within(t, 2*time.Minute), kv.ConnectOptions{
		URL: srv.URL(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.NoError(t, err)
	defer nc.Close()
	s, err := kv.Setup(within(t, 2*time.Minute), nc, kv.Config{})
	require.NoError(t, err)
	defer s.Close()
	srv.Shutdown()
	require.Eventually(t, func() bool { return !nc.IsConnected() }, 2*time.Minute, time.Millisecond)
	_, err = s.Ledger.Read(within(t, 100*time.Millisecond), "$KV.runs_0.x")
	require.Equal(t, fault.NoConnection, fault.CodeOf(err))
	_, _, err = s.Ledger.Create(within(t, 100*time.Millisecond), "$KV.runs_0.x", nil, nil, nil)
	require.Equal(t, fault.NoConnection, fault.CodeOf(err))

	written := make(chan error, 1) // meant while the server is away, written when it is back
	go func() {
		_, _, err := s.Ledger.Create(within(t, 2*time.Minute), "$KV.runs_0.meanwhile", nil, []byte("x"), nil)
		written <- err
	}()
	again, err := embedded.Start(embedded.Options{Dir: dir, Listen: srv.URL()[len("nats://"):]})
	require.NoError(t, err)
	t.Cleanup(again.Shutdown)
	require.NoError(t, receive(t, written, "the record"))
	require.Contains(t, log.String(), "disconnected from NATS")
	// The handler that logs runs beside the write.
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "reconnected to NATS") }, 2*time.Minute, time.Millisecond)
}
