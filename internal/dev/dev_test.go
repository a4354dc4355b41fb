package dev_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func start(t *testing.T, o dev.Options) *dev.Stack {
	t.Helper()
	s, err := dev.Start(within(t), o)
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	return s
}

func connect(t *testing.T, s *dev.Stack) *client.Client {
	t.Helper()
	nc, err := s.Connect(within(t), "test")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	c, err := client.New(within(t), nc, client.Config{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestItRunsPlansAndKeepsThem(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "folder")
	require.False(t, dev.Exists(dir))
	for i := range 3 {
		s := start(t, dev.Options{Dir: dir})
		require.True(t, dev.Exists(dir))
		r, err := connect(t, s).Submit(within(t), []byte(`{"steps":[{"id":"a","tool":"add","arguments":{"a":1,"b":2}}]}`), client.SubmitOptions{Run: "r"})
		require.NoError(t, err)
		require.Equal(t, i > 0, r.Attached())
		out, err := r.Wait(within(t))
		require.NoError(t, err)
		require.Equal(t, outcome.Succeeded, out.Status)
		s.Stop()
		s.Stop() // again is nothing
	}
}

func TestAFolderHasOneOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, dev.Options{Dir: dir})
	_, err := dev.Start(within(t), dev.Options{Dir: dir})
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
	require.True(t, dev.InUse(err), "%v", err)
	require.True(t, dev.Busy(dir))
	s.Stop()
	require.False(t, dev.Busy(dir))
	start(t, dev.Options{Dir: dir})
}

func TestOthersFindIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, running := dev.Running(dir)
	require.False(t, running)
	s := start(t, dev.Options{Dir: dir, Listen: "127.0.0.1:0"})
	url, running := dev.Running(dir)
	require.True(t, running)
	require.Equal(t, s.URL(), url)
	nc, err := nats.Connect(url)
	require.NoError(t, err)
	nc.Close()
	s.Stop()
	_, running = dev.Running(dir)
	require.False(t, running)

	// What a killed process left behind leads nowhere.
	for _, left := range []string{`{"url":"nats://127.0.0.1:1"}`, `{"url":"::"}`, `{`, ``} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "stepjet.url"), []byte(left), 0o600))
		_, running = dev.Running(dir)
		require.False(t, running, left)
	}
}

func TestToolsFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tools.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"tools":[{"builtin":"text"}]}`), 0o600))
	c := connect(t, start(t, dev.Options{Tools: file}))
	out, err := c.Run(within(t), []byte(`{"steps":[{"id":"a","tool":"text_upper","arguments":{"text":"x"}}]}`), client.SubmitOptions{})
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, out.Status)
	out, err = c.Run(within(t), []byte(`{"steps":[{"id":"a","tool":"add"}]}`), client.SubmitOptions{})
	require.NoError(t, err)
	require.Equal(t, outcome.Rejected, out.Status)

	for _, bad := range []string{`{"tools":[{"builtin":"txt"}]}`, `[]`, `{`} {
		require.NoError(t, os.WriteFile(file, []byte(bad), 0o600))
		_, err := dev.Start(within(t), dev.Options{Tools: file})
		require.Equal(t, fault.InvalidConfig, fault.CodeOf(err), "%s: %v", bad, err)
	}
}

func TestStartNamesWhatCantBeUsed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := dev.Start(within(t), dev.Options{Dir: file})
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))

	s := start(t, dev.Options{Listen: "127.0.0.1:0"})
	_, err = dev.Start(within(t), dev.Options{Listen: s.URL()[len("nats://"):]})
	require.Error(t, err, "the port is taken")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = dev.Start(ctx, dev.Options{})
	require.Error(t, err)
}

func TestDefaultDir(t *testing.T) {
	t.Parallel()
	env := func(m map[string]string) func(string) string { return func(k string) string { return m[k] } }
	require.Equal(t, "x", dev.DefaultDir(env(map[string]string{"STEPJET_DATA": "x", "HOME": "/home/ada"})))
	require.Equal(t, "/data/stepjet", dev.DefaultDir(env(map[string]string{"XDG_DATA_HOME": "/data", "HOME": "/home/ada"})))
	require.Equal(t, "/home/ada/.local/share/stepjet", dev.DefaultDir(env(map[string]string{"XDG_DATA_HOME": "relative", "HOME": "/home/ada"})))
	require.Empty(t, dev.DefaultDir(env(nil)))
}

func TestTheDurabilityOfANewFolder(t *testing.T) {
	t.Parallel()
	s := start(t, dev.Options{Dir: t.TempDir(), Store: kv.Config{StepsAsync: true}, SyncAlways: true})
	nc, err := s.Connect(within(t), "test")
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	steps, err := js.Stream(within(t), subjects.StepsStream(0))
	require.NoError(t, err)
	require.Equal(t, jetstream.AsyncPersistMode, steps.CachedInfo().Config.PersistMode)
}
