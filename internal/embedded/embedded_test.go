package embedded_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
)

func connect(t *testing.T, s *embedded.Server) *nats.Conn {
	nc, err := nats.Connect(s.URL(), nats.InProcessServer(s.InProcess()))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

func context5(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestTheStoreSurvivesARestart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	first, err := embedded.Start(embedded.Options{Dir: dir, SyncAlways: true})
	require.NoError(t, err)
	js, err := jetstream.New(connect(t, first))
	require.NoError(t, err)
	_, err = js.CreateStream(context5(t), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}})
	require.NoError(t, err)
	_, err = js.Publish(context5(t), "s", []byte("kept"))
	require.NoError(t, err)
	first.Shutdown()
	first.Shutdown() // does nothing

	second, err := embedded.Start(embedded.Options{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(second.Shutdown)
	js, err = jetstream.New(connect(t, second))
	require.NoError(t, err)
	stream, err := js.Stream(context5(t), "S")
	require.NoError(t, err)
	msg, err := stream.GetLastMsgForSubject(context5(t), "s")
	require.NoError(t, err)
	require.Equal(t, "kept", string(msg.Data))
}

func TestATemporaryStoreIsRemovedAndNoPortIsOpen(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s, err := embedded.Start(embedded.Options{})
	require.NoError(t, err)
	require.Empty(t, s.URL())
	found, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Len(t, found, 1)
	s.Shutdown()
	found, err = os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestListenAndMaxPayload(t *testing.T) {
	t.Parallel()
	s, err := embedded.Start(embedded.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0", MaxPayload: 2 << 20})
	require.NoError(t, err)
	t.Cleanup(s.Shutdown)
	nc, err := nats.Connect(s.URL())
	require.NoError(t, err)
	defer nc.Close()
	require.EqualValues(t, 2<<20, nc.MaxPayload())
}

func TestWhatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, c := range map[string]struct {
		o    embedded.Options
		says string
	}{
		"port taken":    {embedded.Options{Dir: t.TempDir(), Listen: taken.Addr().String()}, "address already in use"},
		"no port":       {embedded.Options{Dir: t.TempDir(), Listen: "localhost"}, "missing port"},
		"bad port":      {embedded.Options{Dir: t.TempDir(), Listen: "localhost:x"}, "no port number"},
		"dir is a file": {embedded.Options{Dir: file}, "not a directory"},
		"no config":     {embedded.Options{Dir: t.TempDir(), ConfigFile: file + ".absent"}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			_, err := embedded.Start(c.o)
			require.Equal(t, fault.InvalidConfig, fault.CodeOf(err), "%v", err)
			require.ErrorContains(t, err, c.says)
			require.Less(t, time.Since(began), 10*time.Second)
		})
	}
}

func TestConfigFileAndLogger(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "nats.conf")
	require.NoError(t, os.WriteFile(conf, []byte(`authorization { user: a, password: b }`), 0o600))
	var log bytes.Buffer
	s, err := embedded.Start(embedded.Options{
		Dir: t.TempDir(), Listen: "127.0.0.1:0", ConfigFile: conf, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.NoError(t, err)
	_, err = nats.Connect(s.URL())
	require.ErrorIs(t, err, nats.ErrAuthorization)
	s.Shutdown()
	require.Contains(t, log.String(), "authentication error")
}
