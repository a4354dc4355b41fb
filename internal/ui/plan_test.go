package ui_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/ui"
	"github.com/stepjet/stepjet/plan"
)

// What is wrong with a plan is told with where in its text it stands, in bytes; also where it is no JSON yet.
func TestProblemsHaveTheirPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	type tried struct {
		Problems      []fault.Problem
		ProblemPlaces []plan.Place `json:"problem_places"`
		WarningPlaces []plan.Place `json:"warning_places"`
		Steps         []struct{ ID string }
	}
	text := `{"steps":[{"id":"ä","tool":"nobody"},` + "\n" + ` {"id":"b","tool":"echo","arguments":{"x":"$ref:c"}}]}`
	d := post[tried](w, "validate", text)
	require.Len(t, d.ProblemPlaces, len(d.Problems))
	found := map[fault.Code]string{}
	for i, p := range d.Problems {
		at := d.ProblemPlaces[i]
		found[p.Code] = fmt.Sprint(at.Line, " ", text[at.Offset:at.End])
	}
	require.Equal(t, `1 "nobody"`, found[fault.UnknownTool])
	require.Equal(t, `2 "$ref:c"`, found[fault.UnknownRef])
	broken := post[tried](w, "validate", `{"steps":[`)
	require.Equal(t, []plan.Place{{Offset: 10, End: 10, Line: 1, Column: 11}}, broken.ProblemPlaces)
	require.Equal(t, "a", post[tried](w, "validate", `{"steps":[{"id":"a","tool":"echo"}]}`).Steps[0].ID)

	whole := `{"steps":[{"id":"a","tool":"echo","arguments":{"n":12345678901234567890}}]}`
	key := w.run("default", "kept", whole)
	require.Equal(t, whole, get[struct{ Text string }](w, "runs/"+key+"/plan").Text)
	refused(w, w.request(http.MethodGet, "/api/v1/runs/default.nobody/plan", nil), http.StatusNotFound)
}

// An override is looked at before it is set, and is set by who may: for all by who sees all.
func TestOverridesAreLookedAtAndSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *ui.Config) {
		line := func(name, role string, tenants ...string) map[string]any {
			return map[string]any{"sha256": hashed(name), "name": name, "role": role, "tenants": tenants}
		}
		c.Auth = tokens(t, line("all", "operator", "*"), line("ann", "operator", "acme"), line("vic", "viewer", "*"))
	})
	type overridden struct {
		Before, After, Was map[string]any
		Set                bool
	}
	body := func(override, tenant string, set bool) string {
		return fmt.Sprintf(`{"override":%q,"tenant":%q,"set":%v}`, override, tenant, set)
	}
	send := func(body string) *http.Response {
		return w.request(http.MethodPost, "/api/v1/tools/echo/override", []byte(body))
	}
	const eight = `{"x-orchestration":{"max_concurrency":8}}`
	w.token = "vic"
	refused(w, send(body(eight, "", false)), http.StatusForbidden)
	w.token = "ann"
	refused(w, send(body(eight, "", false)), http.StatusForbidden)
	refused(w, send(body(`{"x-orchestration":{"timeout_ms":50}}`, "beta", false)), http.StatusNotFound)
	e := refused(w, send(body(eight, "acme", false)), http.StatusUnprocessableEntity)
	require.Equal(t, fault.InvalidTool, e.Code, "a tenant takes away, and a limit is shared")
	w.token = "all"
	for _, wrong := range []string{`{`, `{"limit":1}`, `{"x-orchestration":{"max_concurrency":"x"}}`} {
		require.Equal(t, fault.InvalidTool, refused(w, send(body(wrong, "", true)), http.StatusUnprocessableEntity).Code, wrong)
	}
	refused(w, w.request(http.MethodPost, "/api/v1/tools/no%20tool/override", []byte(body(eight, "", true))), http.StatusBadRequest)
	look := post[overridden](w, "tools/echo/override", body(eight, "", false))
	require.False(t, look.Set)
	require.NotEqual(t, look.Before, look.After)
	require.Equal(t, look.Before, post[overridden](w, "tools/echo/override", body("", "", false)).After, "nothing was set")
	require.True(t, post[overridden](w, "tools/echo/override", body(eight, "", true)).Set)
	require.Eventually(t, func() bool {
		now := post[overridden](w, "tools/echo/override", body("", "", false))
		return now.Was != nil && now.Was["by"] == "all" && fmt.Sprint(now.Before) == fmt.Sprint(look.After)
	}, patience, 10*time.Millisecond)
	w.token = "ann"
	require.True(t, post[overridden](w, "tools/echo/override", body(`{"x-orchestration":{"timeout_ms":50}}`, "acme", true)).Set)
	require.Eventually(t, func() bool {
		now := post[overridden](w, "tools/echo/override", body("", "acme", false))
		return now.Was != nil && fmt.Sprint(now.Before) != fmt.Sprint(now.After)
	}, patience, 10*time.Millisecond)
	w.token = "all"
	require.True(t, post[overridden](w, "tools/echo/override", body("", "", true)).Set)
	require.Empty(t, post[overridden](w, "tools/nobody/override", body(eight, "", false)).After, "the tool need not be there")
}
