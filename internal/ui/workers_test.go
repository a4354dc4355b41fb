package ui_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/ui"
	"github.com/stepjet/stepjet/internal/version"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// staff is what is looked at of those who live.
type staff struct {
	Workers       []tool.Worker
	Orchestrators []struct {
		ID, Version string
		Partitions  []int
	}
	Unknown *fault.Error
	Now     time.Time
}

// The page knows who lives from its first answer on, and is told who goes.
func TestThePageShowsWhoLives(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.run("acme", "one", `{"steps":[{"id":"a","tool":"echo","arguments":{"n":1}}]}`)
	first := get[staff](w, "workers")
	require.Len(t, first.Workers, 1)
	require.Positive(t, first.Workers[0].Done)
	require.Equal(t, version.Stepjet(), first.Workers[0].Version)
	require.Nil(t, first.Unknown)
	require.Len(t, first.Orchestrators, 1)
	require.Equal(t, version.Stepjet(), first.Orchestrators[0].Version)
	require.Len(t, first.Orchestrators[0].Partitions, 64)
	require.WithinDuration(t, time.Now(), first.Now, time.Minute)

	store, err := kv.Open(w.ctx(), w.connect())
	require.NoError(t, err)
	defer store.Close()
	const name = `<img src=x onerror="window.hacked=1">`
	require.NoError(t, store.Beats().Say(name, wire.Beat{Worker: tool.Worker{Host: name}}))
	lives := func() bool {
		for _, x := range get[staff](w, "workers").Workers {
			if x.Name == name {
				return true
			}
		}
		return false
	}
	require.Eventually(t, lives, patience, 10*time.Millisecond)
	require.NoError(t, store.Beats().Say(name, wire.Beat{Gone: true}))
	require.Eventually(t, func() bool { return !lives() }, patience, 10*time.Millisecond)
}

// Who sees some tenants is not told of workers, which tell of the load of all.
func TestWorkersAreForThoseWhoSeeAll(t *testing.T) {
	t.Parallel()
	some, all := "some", "all"
	auth, err := ui.ParseTokens([]byte(`{"tokens":[
		{"sha256":"` + hashed(some) + `","name":"ann","role":"viewer","tenants":["acme"]},
		{"sha256":"` + hashed(all) + `","name":"bob","role":"viewer","tenants":["*"]}]}`))
	require.NoError(t, err)
	w := newWorld(t, func(c *ui.Config) { c.Auth = auth })
	w.token = some
	require.Equal(t, fault.Permission, refused(w, w.request(http.MethodGet, "/api/v1/workers", nil), http.StatusForbidden).Code)
	w.token = all
	require.Len(t, get[staff](w, "workers").Workers, 1)
}

// The doctor's findings are told to those who see all, of one examination for all who ask.
func TestThePageTellsWhatTheDoctorSays(t *testing.T) {
	t.Parallel()
	some, all := "some", "all"
	w := newWorld(t, func(c *ui.Config) {
		c.Auth = tokens(t,
			map[string]any{"sha256": hashed(some), "name": "ann", "role": "operator", "tenants": []string{"acme"}},
			map[string]any{"sha256": hashed(all), "name": "bob", "role": "viewer", "tenants": []string{"*"}})
	})
	w.token = some
	require.Equal(t, fault.Permission, refused(w, w.request(http.MethodGet, "/api/v1/doctor", nil), http.StatusForbidden).Code)
	js, err := jetstream.New(w.connect())
	require.NoError(t, err)
	dead, err := js.Stream(w.ctx(), "KV_dead")
	require.NoError(t, err)
	config := dead.CachedInfo().Config
	config.AllowRollup = true
	_, err = js.UpdateStream(w.ctx(), config)
	require.NoError(t, err)
	w.token = all
	type said struct {
		Findings []struct{ Check, About, Health, Means, Fix string }
		Well     int
		At       time.Time
	}
	first := get[said](w, "doctor")
	require.Greater(t, first.Well, 10)
	problems := map[string]string{}
	for _, f := range first.Findings {
		require.NotEqual(t, "ok", f.Health)
		if f.Health == "problem" {
			problems[f.Check+" "+f.About] = f.Means
		}
	}
	require.Contains(t, problems, "stream KV_dead")
	require.Equal(t, first, get[said](w, "doctor"), "nobody looked again")
	dead, err = js.Stream(w.ctx(), "KV_dead")
	require.NoError(t, err)
	require.True(t, dead.CachedInfo().Config.AllowRollup, "it mends nothing")
}

// With each tool stands how many workers serve it, and how much of it at a time, as they say themselves.
func TestThePageShowsWhoServesATool(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	store, err := kv.Open(w.ctx(), w.connect())
	require.NoError(t, err)
	defer store.Close()
	type host struct{ Workers, Slots, Busy, Held int }
	type tools struct {
		Tools     []struct{ Name string }
		Hosts     map[string]host
		MoreHosts bool `json:"more_hosts"`
	}
	var own host
	require.Eventually(t, func() bool { // it doesn't wait for those who have not been heard yet
		all := get[tools](w, "tools")
		require.True(t, all.Hosts == nil || len(all.Hosts) == len(all.Tools))
		own = all.Hosts["echo"]
		return own.Workers == 1 && own.Slots > 0
	}, patience, 10*time.Millisecond)
	require.False(t, get[tools](w, "tools").MoreHosts)
	say := func(name string, more int, x ...tool.WorkerTool) {
		require.NoError(t, store.Beats().Say(name, wire.Beat{Worker: tool.Worker{Host: name, Tools: x, More: more}}))
	}
	say("one", 0, tool.WorkerTool{Tool: "echo", Slots: 7, Busy: 3}, tool.WorkerTool{Tool: "secret-of-others", Slots: 1})
	say("two", 9, tool.WorkerTool{Tool: "echo", Slots: 5, Held: true})
	require.Eventually(t, func() bool {
		all := get[tools](w, "tools")
		require.NotContains(t, all.Hosts, "secret-of-others", "it isn't registered")
		return all.Hosts["echo"] == host{2, own.Slots + 7, 3, 1} && all.MoreHosts
	}, patience, 10*time.Millisecond)
	require.NoError(t, store.Beats().Say("one", wire.Beat{Worker: tool.Worker{Host: "one"}, Gone: true}))
	require.Eventually(t, func() bool { return get[tools](w, "tools").Hosts["echo"] == host{1, own.Slots, 0, 1} }, patience, 10*time.Millisecond)
}
