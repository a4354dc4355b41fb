package orchestrator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/doctor"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/seal"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

const secret = "s3cr3t-of-ann-0123456789"

func newRing(t testing.TB) *seal.Keyring {
	t.Helper()
	k, err := seal.NewKey(time.Now())
	require.NoError(t, err)
	return seal.NewKeyring(k)
}

func withSecret(t testing.TB, step string) wire.RunContext {
	t.Helper()
	c, err := wire.NewContext(map[string]string{"token": secret, "user": "ann"}, "token")
	require.NoError(t, err)
	if step == "" {
		return wire.RunContext{All: c}
	}
	return wire.RunContext{Steps: map[string]wire.Context{step: c}}
}

// teller is a worker with one tool, which says how long the token is that it was given, and fails where it is asked to.
func (s *system) teller(keys *seal.Keyring) {
	w, err := worker.New(natstest.Connect(s.t, s.srv), worker.Config{Name: "teller", SecretsKey: keys})
	require.NoError(s.t, err)
	def := &tool.Definition{Name: "tell", Orchestration: retrying}
	require.NoError(s.t, w.HandleRaw(def, func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
		info, _ := worker.InfoFrom(ctx)
		token, _ := info.Context.Get("token")
		if info.Attempt < 3 {
			return worker.Output{}, errors.New("401 for " + token)
		}
		return worker.Output{Body: fmt.Appendf(nil, `{"bytes":%d,"args":%s}`, len(token), args)}, nil
	}))
	s.background(w.Run, w.Ready())
}

// tapped returns all that goes through a server, headers included.
func tapped(t testing.TB, nc *nats.Conn) (said func() string) {
	t.Helper()
	var mu sync.Mutex
	var b bytes.Buffer
	_, err := nc.Subscribe(">", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(&b, "%s %v %s\n", m.Subject, m.Header, m.Data)
	})
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return b.String()
	}
}

// With a key that the orchestrators publish, no message that goes through the server holds a secret; its tool gets it
// all the same, at every attempt, and other tools' steps are as they always were.
func TestSealedSecretsAreForTheirToolsAlone(t *testing.T) {
	t.Parallel()
	keys := newRing(t)
	s := start(t, func(c *orchestrator.Config) { c.SecretsKey = keys })
	said := tapped(t, natstest.Connect(t, s.srv))
	s.teller(keys)
	key, err := s.client.SealingKey(ctx(t))
	require.NoError(t, err)
	require.Equal(t, keys.Newest().ID(), key)
	r, err := s.client.Submit(ctx(t), []byte(`{"steps":[{"id":"t","tool":"tell"},{"id":"e","tool":"echo","arguments":{"v":1}}],"output_steps":["t"]}`),
		client.SubmitOptions{Run: "order #42", Context: withSecret(t, "t")})
	require.NoError(t, err)
	o := s.wait(r)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	got, _ := o.Results.Get("t")
	require.JSONEq(t, fmt.Sprintf(`{"bytes":%d,"args":{}}`, len(secret)), string(got))
	all := said()
	require.NotContains(t, all, secret)
	require.Contains(t, all, "401 for "+wire.Redacted)
	require.Contains(t, all, subjects.HeaderContextSealed)
	for line := range strings.Lines(all) {
		if strings.HasPrefix(line, "step.") {
			require.Equal(t, strings.Contains(line, ".tell."), strings.Contains(line, "Stepjet-Version:[2]"), line)
		}
	}
}

// Who names the key itself need not ask the registry. What can't be opened fails its step at once, and says what to do.
func TestAStepForAWorkerWithoutTheKeyFails(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.teller(nil)
	key, err := s.client.SealingKey(ctx(t))
	require.NoError(t, err)
	require.Empty(t, key, "none is published")
	pinned, err := client.New(ctx(t), s.nc, client.Config{SealTo: newRing(t).Newest().String()})
	require.NoError(t, err)
	t.Cleanup(pinned.Close)
	o, err := pinned.Run(ctx(t), []byte(`{"steps":[{"id":"t","tool":"tell"}]}`), client.SubmitOptions{Context: withSecret(t, "")})
	require.NoError(t, err)
	require.Equal(t, outcome.Failed, o.Status)
	require.Equal(t, fault.Sealed, o.Errors[0].Code)
	require.Contains(t, o.Errors[0].Hint, "--secrets-key")
	require.Equal(t, 1, o.Errors[0].Attempts, "trying again does not help")
}

// A worker says when it registers which keys it holds. Before any step fails of it, the doctor names those that lack
// the published one.
func TestTheDoctorNamesWorkersWithoutTheKey(t *testing.T) {
	t.Parallel()
	keys := newRing(t)
	s := start(t, func(c *orchestrator.Config) { c.SecretsKey = keys })
	said := tapped(t, natstest.Connect(t, s.srv))
	found := func() (about, registry string) {
		r, err := doctor.Examine(ctx(t), s.nc, doctor.Options{})
		require.NoError(t, err)
		for _, f := range r.Findings {
			if f.Check == "secrets" && f.Health == doctor.Notable {
				about += f.Found + f.Fix
			} else if f.Check == "registry" {
				registry += f.About
			}
		}
		return about, registry
	}
	s.teller(nil)
	about, registry := found()
	require.Contains(t, about, "teller (tell, ")
	require.Contains(t, about, "--secrets-key FILE")
	require.Empty(t, registry, "the published key is no tool's entry, and none of a newer version")
	s.teller(keys)
	about, _ = found()
	require.NotContains(t, about, "teller")
	for line := range strings.Lines(said()) {
		if strings.HasPrefix(line, "api.tools.register.tell ") {
			require.Regexp(t, `Stepjet-Secrets-Keys:\[(none|`+keys.Newest().ID()+`)\]`, line, "ids alone")
		}
	}
}

// A ciphertext that somebody took from another run is none in this one.
func TestASealedSecretIsOfItsRunAlone(t *testing.T) {
	t.Parallel()
	keys := newRing(t)
	s := start(t, func(c *orchestrator.Config) { c.SecretsKey = keys })
	s.teller(keys)
	value, err := keys.Newest().Seal(seal.About("default", "first", "token"), secret)
	require.NoError(t, err)
	send := func(run, value string) *outcome.Run {
		h := nats.Header{
			subjects.HeaderVersion: {subjects.SealedVersion}, subjects.HeaderContextSealed: {"token"}, subjects.HeaderContext: {`{"token":"` + value + `"}`},
		}
		return s.published(run, `{"steps":[{"id":"t","tool":"tell"}]}`, h)
	}
	require.Equal(t, outcome.Succeeded, send("first", value).Status)
	stolen := send("second", value)
	require.Equal(t, outcome.Failed, stolen.Status)
	require.Equal(t, fault.Sealed, stolen.Outcome.Errors[0].Code)
	require.Equal(t, fault.InvalidValue, send("third", "s3cr3t as it is").Outcome.Problems[0].Code)
}

// A worker that takes nothing out of its errors leaks no secret into what is kept or told of the run.
func TestTheOwnerTakesSecretsOutOfErrors(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]*seal.Keyring{"open": nil, "sealed": newRing(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &book{}
			s := start(t, func(c *orchestrator.Config) { c.SecretsKey, c.Logger = keys, slog.New(slog.NewTextHandler(log, nil)) })
			s.leaks(t)
			log.mu.Lock()
			defer log.mu.Unlock()
			require.NotContains(t, log.b.String(), "s3cr3t")
		})
	}
}

type book struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *book) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (s *system) leaks(t *testing.T) {
	said := tapped(t, natstest.Connect(t, s.srv))
	_, err := s.store.Requests.RequestRegister(ctx(t), []byte(`{"name":"leaky"}`))
	require.NoError(t, err)
	run, err := s.client.Submit(ctx(t), []byte(`{"steps":[{"id":"a","tool":"leaky"},{"id":"b","tool":"leaky"}]}`), client.SubmitOptions{Run: "leaks", Context: withSecret(t, "")})
	require.NoError(t, err)
	js, err := s.nc.JetStream()
	require.NoError(t, err)
	queue, err := js.PullSubscribe(subjects.ToolFilter("leaky", 0), "leaky", nats.Bind(subjects.StepsStream(0), "leaky"))
	require.NoError(t, err)
	bodies := []string{
		fmt.Sprintf(`{"code":"tool_terminal","message":"401 for %s","hint":"not %s","details":{"sent":["%s"]}}`, secret, secret, strings.ReplaceAll(secret, "-", `\u002d`)),
		fmt.Sprintf(`{"code":"tool_terminal","message":"%s"}`, strings.Repeat("x", 16<<10-10)+secret),
	}
	for _, body := range bodies {
		one, err := queue.Fetch(1, nats.MaxWait(patience))
		require.NoError(t, err)
		m := &nats.Msg{Subject: one[0].Header.Get(subjects.HeaderResult), Header: nats.Header{subjects.HeaderStatus: {subjects.StatusError}}, Data: []byte(body)}
		_, err = js.PublishMsg(m)
		require.NoError(t, err)
		require.NoError(t, one[0].Ack())
	}
	o := s.wait(run)
	require.Equal(t, outcome.Failed, o.Status)
	require.Contains(t, string(o.JSON()), wire.Redacted)
	letters, err := s.client.DeadLetters(ctx(t), client.DeadOptions{})
	require.NoError(t, err)
	require.Len(t, letters, 2)
	seen := map[string]bool{} // what is told comes a moment after what is kept
	places := []string{"$KV.history.", "$KV.dead.", "event.", "notify."}
	require.Eventually(t, func() bool {
		for line := range strings.Lines(said()) {
			for _, place := range places {
				if strings.HasPrefix(line, place) {
					seen[place] = true
					require.NotContains(t, line, "s3cr3t", place)
				}
			}
		}
		return len(seen) == len(places)
	}, patience, 10*time.Millisecond)
}
