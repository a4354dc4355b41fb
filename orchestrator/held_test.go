package orchestrator_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// listed writes what the tool "list" returns to a place of the state that has to be a list of numbers.
const listed = `{"calls": [
	{"_tool": "list", "_outputPath": "†state.all || †state.error"},
	{"_tool": "echo", "_id": "use", "first": "†state.all[0]"},
	{"_tool": "echo", "_id": "report", "why": "†state.error.code"}],
	"state": {"schema": {"type": "object", "properties": {
		"all": {"type": "array", "items": {"type": "number"}}, "error": {"type": "object"}}}}}`

func (s *system) lists(value string) (stop func()) {
	return s.host("list", nil, func(context.Context, json.RawMessage) (worker.Output, error) {
		return worker.Output{Body: []byte(value)}, nil
	})
}

// TestTheStateIsHeldAgainstItsSchema: a small result by every owner alike, one in a blob by a record, which stands before
// anybody follows it.
func TestTheStateIsHeldAgainstItsSchema(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("1,", 200_000)
	for _, c := range []struct {
		name, value string
		fits, told  bool
	}{
		{"small", `[1, 2]`, true, false},
		{"small-and-wrong", `[1, "2"]`, false, false},
		{"large", `[` + many + `1]`, true, true},
		{"large-and-wrong", `[` + many + `"1"]`, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.lists(c.value)
			o := s.run(listed, "r")
			require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
			doc := s.history("default", "r")
			require.Equal(t, []string{wire.LanguageTwo, wire.StateSchema}, s.frozen("r").Needs)
			told := subjects.ToldRecord(subjects.NewRun("default", "r"), doc.Generation, "list", subjects.ToldState, 1)
			require.Equal(t, c.told, s.lies(told))
			if c.fits {
				require.Empty(t, o.Errors)
				require.Equal(t, `{"first":1}`, result(t, o, "use"))
				return
			}
			require.Equal(t, fault.StateInvalid, o.Errors[0].Code, "%s", o.JSON())
			require.Contains(t, o.Errors[0].Message, "†state.all[")
			require.Equal(t, 1, o.Errors[0].Attempts)
			require.Equal(t, "list_error", o.Errors[0].HandledBy)
			require.Equal(t, `{"why":"state_invalid"}`, result(t, o, "report"))
		})
	}
}

// TestTheStateIsHeldByTheNextOwner: one that dies before it has recorded whether a result fits leaves that to the next.
func TestTheStateIsHeldByTheNextOwner(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.lists(`["` + strings.Repeat("x", 300<<10) + `"]`)
	const plan = `{"calls": [{"_tool": "gate"}, {"_tool": "list", "_after": "gate", "_outputPath": "†state.all"}],
		"state": {"schema": {"properties": {"all": {"items": {"type": "number"}}}}}}`
	r := s.submit(plan, "r")
	<-s.tools.begun
	s.leave()
	close(s.tools.gate)
	s.orchestrator()
	o := s.wait(r)
	require.Equal(t, outcome.Partial, o.Status, "%s", o.JSON())
	require.Equal(t, fault.StateInvalid, o.Errors[0].Code)
}

// TestTheStateIsHeldAsOfItsStart: a run that was started by an orchestrator which held nothing against the schema goes on
// so, whoever takes it over: else two owners would come to two ends.
func TestTheStateIsHeldAsOfItsStart(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.lists(`[1, "2"]`)
	bare, _, _ := strings.Cut(listed, `"state": {"schema"`)
	bare = strings.TrimRight(bare, ", \n\t") + "}"
	require.Equal(t, outcome.Succeeded, s.run(bare, "bare").Status)
	require.Equal(t, []string{wire.LanguageTwo}, s.frozen("bare").Needs)
	started, err := s.store.Ledger.Read(ctx(t), subjects.StartRecord(subjects.NewRun("default", "bare"), s.history("default", "bare").Generation, 1))
	require.NoError(t, err)

	o := s.before(listed, started)
	require.Empty(t, o.Errors)
	require.Equal(t, `{"first":1}`, result(t, o, "use"))
}
