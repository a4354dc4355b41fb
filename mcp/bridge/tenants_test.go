package bridge

import (
	"encoding/json"
	"flag"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/stepjettest"
	"github.com/stepjet/stepjet/wire"
)

var calls = flag.Int("calls", 200, "how many calls TestTokensOfTwoTenantsNeverCross makes of each kind of server, at least 100")

// Two tenants call one server at once, each run with a token of its own: every call goes with its own run's, whatever
// connection it takes.
func TestTokensOfTwoTenantsNeverCross(t *testing.T) {
	t.Parallel()
	for _, stateful := range []bool{true, false} {
		t.Run(fmt.Sprint("stateful ", stateful), func(t *testing.T) {
			t.Parallel()
			entry := webServer(t, testServer(t.TempDir()), stateful, nil)
			entry["headers"] = map[string]string{"Authorization": "Bearer ${context:token}"}
			entry["x-stepjet"].(map[string]any)["context"] = map[string]any{"allow-keys": []string{"user"}}
			file := fileOf(t, map[string]any{"web": entry})
			writeLock(t, file, "web", "meta")
			w := &world{Stack: stepjettest.New(t), t: t, file: file}
			w.open()
			var submitters sync.WaitGroup
			for _, tenant := range []string{"acme", "globex"} {
				c, err := client.New(w.ctx(), w.Conn(), client.Config{Tenant: tenant})
				require.NoError(t, err)
				t.Cleanup(c.Close)
				for lane := range 5 {
					submitters.Go(func() {
						for run := range *calls / 100 {
							w.callWithToken(c, fmt.Sprintf("%s-%d-%d", tenant, lane, run))
						}
					})
				}
			}
			submitters.Wait()
		})
	}
}

// callWithToken runs a plan of ten calls under a token, and looks at what the server was told.
func (w *world) callWithToken(c *client.Client, token string) {
	ctx, err := wire.NewContext(map[string]string{"token": token, "user": c.Tenant()}, "token")
	if !assert.NoError(w.t, err) {
		return
	}
	out, err := c.Run(w.ctx(), []byte(`{"steps":[{"id":"all","tool":"web_meta","for_each":{"in":[0,1,2,3,4,5,6,7,8,9]},"arguments":{}}],"output":"$ref:all[*].data"}`),
		client.SubmitOptions{Context: client.RunContext{All: ctx}})
	if !assert.NoError(w.t, err) || !assert.Equal(w.t, outcome.Succeeded, out.Status, "%s", out.JSON()) {
		return
	}
	var told []struct{ Authorization, User string }
	if !assert.NoError(w.t, json.Unmarshal(out.Output, &told)) || !assert.Len(w.t, told, 10, "%s", out.Output) {
		return
	}
	for _, call := range told {
		assert.Equal(w.t, "Bearer "+token, call.Authorization)
		assert.Equal(w.t, c.Tenant(), call.User)
	}
}
