package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

const agentFiles = "testdata/agents/"

// holding has the planner of a test wait before it answers.
type holding struct {
	asked, goesOn chan struct{} // nil: it doesn't wait
	answers       []string      // in the place of those that divide; %s stands for what it was given
}

// planning hosts a planner that divides by what the agent was given, and goes around it where that fails.
func planning(t *testing.T, url string, hold ...holding) {
	nc, err := nats.Connect(url)
	require.NoError(t, err)
	w, err := worker.New(nc, worker.Config{})
	require.NoError(t, err)
	answers := []string{
		`{"steps":[{"id":"first","tool":"divide","arguments":{"a":12,"b":%s}}],"usage":{"input_tokens":900,"output_tokens":40,"cost_usd":0.001}}`,
		`{"steps":[{"id":"next","tool":"add","arguments":{"a":%s,"b":1}},{"id":"second","tool":"divide","arguments":{"a":12,"b":"$ref:next.result"}}],
			"usage":{"input_tokens":1100,"output_tokens":60,"cost_usd":0.002}}`,
		`{"output":{"quotient":12,"by":%s}}`,
	}
	if len(hold) > 0 && hold[0].answers != nil {
		answers = hold[0].answers
	} else if len(hold) > 0 {
		answers[2] = `{"output":{"quotient":"$ref:r1.second.result","by":%s}}`
	}
	worker.Handle(w, "planner", func(_ context.Context, request map[string]any) (json.RawMessage, error) {
		raw, _ := json.Marshal(request) // it was read from JSON
		var in struct {
			Round int
			Input struct{ By json.Number }
		}
		if json.Unmarshal(raw, &in) != nil || in.Round >= len(answers) {
			return nil, worker.Terminal(errors.New("no answer"))
		}
		if in.Round == 1 && len(hold) > 0 && hold[0].asked != nil {
			close(hold[0].asked)
			<-hold[0].goesOn
		}
		return json.RawMessage(strings.ReplaceAll(answers[in.Round], "%s", in.Input.By.String())), nil
	}, worker.Contract(tool.Orchestration{Request: tool.WholeRequest}))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	<-w.Ready()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		nc.Close()
	})
}

// What is done with agents, without a server and on a real one: a run shows its rounds, goes around a call that failed, and
// says what its planner took.
func TestAgents(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(transcript(t, "", "agents", "apply", "--dry-run", agentFiles+"flaws.json", agentFiles+"helper.json"))
	for _, args := range [][]string{{"agents", "run", "x", "--input", "[1]"}, {"agents", "run", "x", "--input", "@testdata/none"}, {"agents", "run"}} {
		b.WriteString(transcript(t, "", args...))
	}
	for _, name := range []string{"apply", "list", "show", "run"} {
		text, _, _ := strings.Cut(transcript(t, "", "agents", name, "--help"), "\nGlobal Flags:")
		b.WriteString(text + "\n")
	}
	data := folder(t)
	_, url := developing(t, data)
	run := func(args ...string) (stdout, stderr string, code int) {
		stdout, stderr, code = execute(t, data, "", args...)
		fmt.Fprintf(&b, "$ stepjet %s\n%s%s--- exit code %d\n\n", strings.Join(args, " "), stderr, stdout, code)
		return stdout, stderr, code
	}
	run("agents", "list")
	run("agents", "apply", agentFiles+"helper.json") // its planner is not there
	planning(t, url)
	run("agents", "apply", agentFiles+"helper.json")
	run("agents", "apply", agentFiles+"helper.json")
	run("agents", "list")
	run("agents", "show", "helper")
	run("agents", "show", "divide")
	run("agents", "list", "-o", "json")
	run("agents", "apply", agentFiles+"wide.json")
	for _, args := range [][]string{{"agents", "list"}, {"agents", "show", "a-researcher-with-a-name-that-is-longer-than-most"}} {
		stdout, _, _ := run(args...)
		for line := range strings.Lines(stdout) {
			require.LessOrEqual(t, columns(strings.TrimSuffix(line, "\n")), 80, line)
		}
	}
	golden(t, "agents", b.String())

	stdout, stderr, code := execute(t, data, "", "agents", "run", "helper", "--run", "halves", "--input", `{"by": 0}`, "-o", "json")
	require.Zero(t, code, stderr+stdout)
	require.Contains(t, stdout, `"agent":{"quotient":12,"by":0}`)
	told := regexp.MustCompile(`[0-9.]+ ?(ms|µs|s)\b`).ReplaceAllString(stderr, "T")
	for _, heading := range []string{"\nround 0\n  succeeded  the planner  planner", "\n  failed     first  divide", "\nround 1\n  succeeded  the planner  planner",
		"\n  succeeded  next  add", "\n  succeeded  second  divide", "\nround 2\n  succeeded  the planner"} {
		require.Contains(t, told, heading, stderr)
	}
	require.NotContains(t, told, "r0", "what stands for earlier rounds is no call")
	require.Regexp(t, `(?m)^0 +succeeded +\S+ +900 +40 +\$0\.001 +1 \(1 did not succeed\)$`, told)
	require.Regexp(t, `(?m)^1 +succeeded +\S+ +1100 +60 +\$0\.002 +2$`, told)
	require.Regexp(t, `(?m)^2 +succeeded +\S+ +- +- +- +0$`, told)
	require.Contains(t, told, "3 rounds, 3 calls of the planner, 3 calls that it asked for, 2000 tokens in, 100 out, $0.003\n")

	_, stderr, code = execute(t, data, `{"by": "`+strings.Repeat("0", 1<<20)+`"}`, "agents", "run", "helper", "--input", "@-")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "the input in - has 1048576 bytes or more, and the plan that it goes into has at most 1032192")
	_, stderr, code = execute(t, data, `{"by": "`+strings.Repeat("0", 1_032_190)+`"}`, "agents", "run", "helper", "--input", "@-")
	require.NotZero(t, code)
	require.Contains(t, stderr, "the plan has 1032255 bytes, at most 1032192 are allowed")

	// The same run again is the one that was there, from a file, and quietly.
	input := filepath.Join(t.TempDir(), "input.json")
	require.NoError(t, os.WriteFile(input, []byte("\ufeff"+`{"by": 0}`+"\n"), 0o600))
	stdout, stderr, code = execute(t, data, "", "agents", "run", "helper", "--run", "halves", "--input", "@"+input, "-q", "-o", "json")
	require.Zero(t, code, stderr)
	require.Empty(t, stderr)
	require.Contains(t, stdout, `"agent":{"quotient":12,"by":0}`)
	_, stderr, code = execute(t, data, "", "agents", "run", "helper")
	require.Equal(t, 2, code, "its input has no member that is required")
	require.Contains(t, stderr, "by")
}

// While the planner thinks, "get" and "watch" say so, and show the rounds; after the end as well, with what stands for
// earlier rounds and what the planner's answers hold.
func TestLookingAtAnAgent(t *testing.T) {
	t.Parallel()
	data := folder(t)
	_, url := developing(t, data)
	hold := holding{asked: make(chan struct{}), goesOn: make(chan struct{})}
	planning(t, url, hold)
	_, stderr, code := execute(t, data, "", "agents", "apply", agentFiles+"helper.json")
	require.Zero(t, code, stderr)
	_, stderr, code = execute(t, data, `{"steps":[{"id":"a","tool":"helper","arguments":{"by":0}}]}`, "submit", "--run", "r", "-")
	require.Zero(t, code, stderr)
	<-hold.asked
	stdout, stderr, code := execute(t, data, "", "get", "r")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "for the planner, round 1")
	require.Regexp(t, `(?m)a/=0/=plan +planner, the planner +succeeded .* 1 call, 900 tokens in, 40 out, \$0\.001$`, stdout)
	require.Regexp(t, `(?m)^agent +a: 2 rounds, 1 call of the planner, 1 call that it asked for, 900 tokens in`, stdout)
	require.NotContains(t, stdout, "queued")
	stdout, _, code = execute(t, data, "", "watch", "r", "--wait", "200ms")
	require.Equal(t, exitWait, code)
	require.Contains(t, stdout, "failed     a/=0/first  divide")
	close(hold.goesOn)
	_, stderr, code = execute(t, data, "", "get", "r", "--wait", "1m")
	require.Zero(t, code, stderr)
	for _, command := range []string{"get", "watch"} {
		stdout, stderr, code = execute(t, data, "", command, "r")
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, "results of round 1", command)
		require.NotContains(t, stdout, "queued", command)
		require.Regexp(t, `a/=1/second +divide`, stdout, command)
	}
	require.Regexp(t, `(?m)^succeeded  a  helper  [0-9.]+ m?s$`, stdout)
}

// What an agent tells people is seen while it runs, in its report, and with "get" and "watch" after the end; nothing in it steers a
// terminal.
func TestWhatAnAgentTellsPeople(t *testing.T) {
	t.Parallel()
	data := folder(t)
	_, url := developing(t, data)
	planning(t, url, holding{answers: []string{
		`{"steps":[{"id":"m","tool":"communicate","arguments":{"message":"It is done:\n\u001b[2J\u009b1Aall paid."}}]}`, `{"output":%s}`,
	}})
	_, stderr, code := execute(t, data, `{"name":"teller","description":"Tells.","inputSchema":{"type":"object"},
		"agent":{"planner":{"tool":"planner","mode":"plan"},"instructions":"Tell.","tools":["communicate"],"max_rounds":5}}`, "agents", "apply", "-")
	require.Zero(t, code, stderr)
	stdout, stderr, code := execute(t, data, "", "agents", "run", "teller", "--run", "r", "--input", `{"by": 1}`)
	require.Zero(t, code, stderr+stdout)
	require.Contains(t, stderr, "\nmessage    agent/=0/m  It is done:  [2J 1Aall paid.\n", "as it comes")
	require.Contains(t, stderr, "told people\n  round 0\n    It is done:\n     [2J 1Aall paid.\n", "and once it is over")
	for _, x := range [][2]string{{"get", "\ntold people\nagent, round 0  It is done:  [2J 1Aall paid.\n"}, {"watch", "\nmessage    agent/=0/m  It is done:  [2J 1Aall paid.\n"}} {
		stdout, stderr, code = execute(t, data, "", x[0], "r")
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, x[1])
		require.NotContains(t, stdout+stderr, "\x1b")
	}
	stdout, stderr, code = execute(t, data, "", "get", "r", "-o", "json")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, `"messages":[{"step":"agent/=0/m","round":0,"at":"`)
}

// Who waits for an agent whose planner is of no use is told what was wrong with its last answer.
func TestWhatWasWrongWithAnAnswer(t *testing.T) {
	t.Parallel()
	data := folder(t)
	_, url := developing(t, data)
	bad := `{"steps":[{"id":"x","tool":"dvide","arguments":{"a":"$ref:y"}}]}`
	planning(t, url, holding{answers: []string{bad, bad, bad}})
	_, stderr, code := execute(t, data, "", "agents", "apply", agentFiles+"helper.json")
	require.Zero(t, code, stderr)
	stdout, stderr, code := execute(t, data, "", "agents", "run", "helper", "--run", "garbage", "--input", `{"by": 0}`)
	require.Equal(t, 1, code, stderr)
	require.Contains(t, stdout, "planner_invalid")
	require.Regexp(t, `(?m)^what was wrong with the last answer\n  /steps/0/tool: .*dvide.*\(.*divide.*\)$`, stderr)
	require.Contains(t, stderr, "  /steps/0/arguments/a: ")
	require.Regexp(t, `(?m)^2 +succeeded .* 0, refused: unknown_tool$`, stderr)
	stdout, stderr, code = execute(t, data, "", "get", "garbage")
	require.Zero(t, code, stderr)
	require.Regexp(t, `the answer of round 0 was refused: /steps/0/tool: unknown_tool: .*\(and 1 more\)`, stdout)
}

// What the last round of an agent without an output came to is said where its hint leads: when it has run, and by "get".
func TestWhatTheLastRoundCameTo(t *testing.T) {
	t.Parallel()
	data := folder(t)
	_, url := developing(t, data)
	again := `{"steps":[{"id":"x","tool":"add","arguments":{"a":%s,"b":1}},{"id":"y","tool":"add","arguments":{"a":"$ref:x.result","b":1}}]}`
	planning(t, url, holding{answers: []string{again, again}})
	_, stderr, code := execute(t, data, `{"name":"endless","description":"Goes on.","inputSchema":{"type":"object"},
		"agent":{"planner":{"tool":"planner","mode":"plan"},"instructions":"Go on.","tools":["add"],"max_rounds":2}}`, "agents", "apply", "-")
	require.Zero(t, code, stderr)
	stdout, stderr, code := execute(t, data, "", "agents", "run", "endless", "--run", "r", "--input", `{"by": 1}`)
	require.Equal(t, 1, code, stderr)
	require.Contains(t, stdout, "rounds_exhausted")
	require.Contains(t, stdout, "details.last has what the last round came to: stepjet get RUN --step agent")
	require.Contains(t, stderr, "what the last round came to\n  x: {\"result\":2}\n  y: {\"result\":3}\n")
	stdout, stderr, code = execute(t, data, "", "get", "r")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "the last round came to: x: {\"result\":2}\n")
	stdout, stderr, code = execute(t, data, "", "get", "r", "--step", "agent")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, `"last": {`)
}

// What is no agent is not run as one; files that can't be used are told of at once, and so is one that says nothing.
func TestWhatIsNoAgent(t *testing.T) {
	t.Parallel()
	data := folder(t)
	developing(t, data)
	_, stderr, code := execute(t, data, "", "agents", "run", "echo")
	require.Equal(t, 2, code, stderr)
	require.Contains(t, stderr, "echo is a tool, and no agent")
	_, stderr, code = execute(t, data, "", "agents", "apply", "testdata/none.json", "testdata/nothing.json")
	require.Equal(t, 2, code, stderr)
	require.Contains(t, stderr, "none.json")
	require.Contains(t, stderr, "nothing.json")
	_, stderr, code = execute(t, data, `[]`, "agents", "apply", "-")
	require.Equal(t, 2, code, stderr)
	require.Contains(t, stderr, "there is no definition in it")
	_, stderr, code = execute(t, data, "[{\n\"name\": }]", "agents", "apply", "-")
	require.Equal(t, 2, code, stderr)
	require.Contains(t, stderr, "no JSON, in line 2")
}

// An editor of Windows writes a mark before JSON that nobody sees.
func TestAMarkBeforeDefinitionsIsNamed(t *testing.T) {
	t.Parallel()
	_, stderr, code := command(t, "\ufeff[]", "agents", "apply", "--dry-run", "-")
	require.Equal(t, 2, code, stderr)
	require.Contains(t, stderr, "standard input: no JSON: the text begins with a byte order mark")
	require.Contains(t, stderr, "hint: save it as UTF-8 without that mark")
}

// What is said to an agent is told to its planner; one that is over hears nothing.
func TestSayingSomethingToAnAgent(t *testing.T) {
	t.Parallel()
	data := folder(t)
	_, url := developing(t, data)
	hold := holding{asked: make(chan struct{}), goesOn: make(chan struct{})}
	planning(t, url, hold)
	_, stderr, code := execute(t, data, "", "agents", "apply", agentFiles+"helper.json")
	require.Zero(t, code, stderr)
	_, stderr, code = execute(t, data, `{"steps":[{"id":"a","tool":"helper","arguments":{"by":0}}]}`, "submit", "--run", "r", "-")
	require.Zero(t, code, stderr)
	<-hold.asked
	_, stderr, code = execute(t, data, "", "agents", "say", "r", "In words, please.", "--step", "a", "--id", "m1", "--by", "ann")
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "its planner is told with the next request  (id m1)")
	stdout, stderr, code := execute(t, data, "", "agents", "say", "r", "In words, please.", "--step", "a", "--id", "m1", "-o", "json")
	require.Zero(t, code, stderr)
	require.JSONEq(t, `{"run":"r","agent":"a","id":"m1","already":true}`, stdout)
	_, stderr, code = execute(t, data, "", "agents", "say", "r", "Hello?")
	require.Equal(t, 2, code, stderr)
	require.Contains(t, stderr, "has no agent at")
	long := "By the way, " + strings.Repeat("so on and ", 300)
	_, stderr, code = execute(t, data, "", "agents", "say", "r", long, "--step", "a", "--id", "m2")
	require.Zero(t, code, stderr)
	close(hold.goesOn)
	_, stderr, code = execute(t, data, "", "get", "r", "--wait", "1m")
	require.Zero(t, code, stderr)
	stdout, stderr, code = execute(t, data, "", "get", "r")
	require.Zero(t, code, stderr)
	require.Regexp(t, `somebody .*, told in round 2: "By the way, so on .*… \(the beginning of 3014 bytes\)`, stdout)
	stdout, stderr, code = execute(t, data, "", "get", "r", "-o", "json")
	require.Zero(t, code, stderr)
	require.Regexp(t, `"id":"m2",.*"content":"By the way, [^"]*","bytes":3014}`, stdout)
	_, stderr, code = execute(t, data, "", "agents", "say", "r", "Thanks.", "--step", "a")
	require.Equal(t, 1, code, stderr)
	require.Contains(t, stderr, "had finished already")
}
