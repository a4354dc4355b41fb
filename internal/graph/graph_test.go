package graph_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/graph"
	"github.com/stepjet/stepjet/plan"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "go test ./internal/graph -update, and look at the difference")
}

func parse(t *testing.T, body string) *plan.Plan {
	t.Helper()
	p, report := plan.Parse([]byte(body), nil)
	require.Empty(t, report.Problems)
	return p
}

const small = `{"steps":[
	{"id":"tokyo","tool":"get_weather"},
	{"id":"london","tool":"get_weather","optional":true},
	{"id":"end","tool":"compare_data","arguments":{"a":"$ref:tokyo","b":"$ref:london.temp"}}],
	"output_steps":["end"]}`

// branching has conditions, one of them with all that ends a label, and references to how a step ended.
const branching = `{"steps":[
	{"id":"pay","tool":"charge"},
	{"id":"confirm","tool":"confirm","arguments":{"r":"$ref:pay"}},
	{"id":"report","tool":"mail","if":"$status:pay == 'failed'","arguments":{"e":"$error:pay"}},
	{"id":"odd","tool":"t","optional":true,"if":"$ref:confirm.text != \"a \\\"b\\\" <c> #1 \\n\" and\n$ref:confirm.number in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]"},
	{"id":"end","tool":"t","depends_on":["odd"],"arguments":{"x":"$ref:confirm.y || $ref:report.y"}}]}`

// nested has a step with a plan of its own.
const nested = `{"steps":[
	{"id":"list","tool":"list_orders"},
	{"id":"each","for_each":{"in":"$ref:list.orders"},"arguments":{"n":"$ref:item.n"},"plan":{"steps":[
		{"id":"get","tool":"get_order","arguments":{"n":"$input.n"}},
		{"id":"pay","tool":"charge","if":"$ref:get.open","arguments":{"of":"$ref:get"}}],"output_steps":["pay"]}},
	{"id":"mail","tool":"mail","arguments":{"all":"$ref:each[*].data"}}],"output_steps":["mail"]}`

// looping has loops: of a tool, and of a plan for each item.
const looping = `{"steps":[
	{"id":"start","tool":"begin"},
	{"id":"poll","tool":"status","arguments":{"job":"$ref:start.job"},"repeat":{"until":"$last.state == 'done'","max":20,"every":"2s"}},
	{"id":"each","for_each":{"in":"$ref:poll.files"},"repeat":{"max":3},"plan":{"steps":[{"id":"get","tool":"get"},{"id":"put","tool":"put","arguments":{"x":"$ref:get"}}]}}]}`

// worth has values: one calculation with all that ends a label, and one with more around it.
const worth = `{"steps":[
	{"id":"order","tool":"get_order"},
	{"id":"lines","for_each":{"in":"$ref:order.lines"},"value":{"net":{"$calc":"$ref:item.n * $ref:item.price"}}},
	{"id":"total","value":{"$calc":"round(sum($ref:lines[*].data.net) *\n 1.19, 2)"}},
	{"id":"big","value":{"$calc":"$ref:total > 100 and $ref:order.name != \"a <b>\""},"if":"$ref:total != null"},
	{"id":"send","tool":"send","arguments":{"total":"$ref:total"}}],"output_steps":["big","send"]}`

// asking waits for people: before it begins, before a step, for each item, and for a value.
const asking = `{"approval":true,"steps":[
	{"id":"order","tool":"get_order"},
	{"id":"pay","tool":"charge","if":"$ref:order.total > 0","arguments":{"x":"$ref:order.total"},"approval":{"ask":"Pay ${ref:order.total}?"}},
	{"id":"each","tool":"mail","approval":true,"for_each":{"in":"$ref:order.lines"},"arguments":{"x":"$ref:item"}},
	{"id":"who","tool":"ask","arguments":{"question":"Who?"}},
	{"id":"end","tool":"t","depends_on":["pay","each"],"arguments":{"x":"$ref:who"}}]}`

// wide has a wave of 40 steps that one step joins, and names of every length.
func wide() string {
	steps := []string{`{"id":"start","tool":"a/very.long:tool-name/that_goes_on_and_on_and_on"}`}
	var all []string
	for i := range 40 {
		id := fmt.Sprintf("item_%d", i)
		all = append(all, `"`+id+`"`)
		steps = append(steps, fmt.Sprintf(`{"id":%q,"tool":"echo","depends_on":["start"]}`, id))
	}
	steps = append(steps, `{"id":"`+strings.Repeat("j", 64)+`","tool":"join","depends_on":[`+strings.Join(all, ",")+`],"optional":true}`)
	return `{"steps":[` + strings.Join(steps, ",") + `],"output_steps":["start","` + strings.Repeat("j", 64) + `"],"schedule":"waves","on_failure":"stop"}`
}

func TestDraw(t *testing.T) {
	t.Parallel()
	for _, f := range graph.Formats() {
		for name, body := range map[string]string{"small": small, "wide": wide(), "branching": branching, "worth": worth, "nested": nested, "looping": looping, "asking": asking} {
			text, err := graph.Draw(parse(t, body), f, graph.Options{})
			require.NoError(t, err)
			golden(t, name+"."+string(f)+".txt", text)
			again, err := graph.Draw(parse(t, body), f, graph.Options{})
			require.NoError(t, err)
			require.Equal(t, text, again)
		}
	}
	_, err := graph.Draw(parse(t, small), "png", graph.Options{})
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
}

func TestTextShowsAllWhenAsked(t *testing.T) {
	t.Parallel()
	p := parse(t, wide())
	folded, err := graph.Draw(p, graph.Text, graph.Options{})
	require.NoError(t, err)
	require.Contains(t, folded, "… and 28 more")
	all, err := graph.Draw(p, graph.Text, graph.Options{All: true})
	require.NoError(t, err)
	require.NotContains(t, all, "more")
	for i := range p.Steps {
		require.Contains(t, all, p.Steps[i].ID)
	}
}

// Lines fit where names do.
func TestTextKeepsItsWidth(t *testing.T) {
	t.Parallel()
	var steps []string
	for i := range 60 {
		deps := []string{}
		for j := max(0, i-9); j < i; j++ {
			deps = append(deps, fmt.Sprintf(`"step_%d"`, j))
		}
		steps = append(steps, fmt.Sprintf(`{"id":"step_%d","tool":"text_concat","depends_on":[%s]}`, i, strings.Join(deps, ",")))
	}
	p := parse(t, `{"steps":[`+strings.Join(steps, ",")+`],"output_steps":["step_59"]}`)
	for _, width := range []int{60, 80, 120} {
		text, err := graph.Draw(p, graph.Text, graph.Options{Width: width})
		require.NoError(t, err)
		for line := range strings.Lines(text) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), width, line)
			require.Equal(t, strings.TrimRight(line, " \n"), strings.TrimSuffix(line, "\n"), "no blanks at the end")
		}
	}
}

func TestPaint(t *testing.T) {
	t.Parallel()
	p := parse(t, small)
	plain, err := graph.Draw(p, graph.Text, graph.Options{})
	require.NoError(t, err)
	painted, err := graph.Draw(p, graph.Text, graph.Options{Paint: func(_ graph.Part, s string) string {
		if s == "" {
			return s
		}
		return "\x1b[2m" + s + "\x1b[0m"
	}})
	require.NoError(t, err)
	require.Equal(t, plain, strings.NewReplacer("\x1b[2m", "", "\x1b[0m", "").Replace(painted))
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(graph.Describe(parse(t, small)))
	require.NoError(t, err)
	require.JSONEq(t, `{"steps":[
		{"id":"tokyo","tool":"get_weather","wave":1,"depends_on":[]},
		{"id":"london","tool":"get_weather","wave":1,"depends_on":[],"optional":true},
		{"id":"end","tool":"compare_data","wave":2,"depends_on":["tokyo","london"]}],
		"waves":[["tokyo","london"],["end"]],"outputs":["end"]}`, string(b))
}

func TestDescribeConditions(t *testing.T) {
	t.Parallel()
	d := graph.Describe(parse(t, branching))
	require.Equal(t, "$status:pay == 'failed'", d.Steps[2].If)
	require.Equal(t, []string{"pay"}, d.Steps[2].Named)
	require.Empty(t, d.Steps[1].Named)
}

func TestDescribeValues(t *testing.T) {
	t.Parallel()
	d := graph.Describe(parse(t, worth))
	require.True(t, d.Steps[1].Value)
	require.Empty(t, d.Steps[1].Tool+d.Steps[1].Calc)
	require.Equal(t, "round(sum($ref:lines[*].data.net) *\n 1.19, 2)", d.Steps[2].Calc)
	require.False(t, d.Steps[4].Value)
}

// Whatever a condition holds, it moves nobody's cursor and ends no label.
func TestConditionsAreEscaped(t *testing.T) {
	t.Parallel()
	p := parse(t, `{"steps":[{"id":"a","tool":"t"},{"id":"b","tool":"t","if":"$ref:a != '\u0085\u2028\"]; x -> y; <img src=x>'"}]}`)
	for _, f := range graph.Formats() {
		text, err := graph.Draw(p, f, graph.Options{Width: 200})
		require.NoError(t, err)
		require.NotContains(t, text, "\u0085")
		require.NotContains(t, text, "\u2028")
		if f == graph.Mermaid {
			require.NotContains(t, text, "<img")
			require.NotContains(t, text, `"];`)
		}
		if f == graph.DOT {
			require.Contains(t, text, `\"]; x`)
		}
	}
}

func TestThousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1234: "-1,234"} {
		require.Equal(t, want, graph.Thousands(n))
	}
}

// What is asked stands in every form: which steps wait for a person is what a reader of the plan wants to know first.
func TestQuestionsAreDrawn(t *testing.T) {
	t.Parallel()
	p := parse(t, asking)
	for _, f := range graph.Formats() {
		drawn, err := graph.Draw(p, f, graph.Options{})
		require.NoError(t, err)
		require.Equal(t, 2, strings.Count(drawn, "after an approval")-strings.Count(drawn, "· after an approval"), "%s\n%s", f, drawn)
		require.Equal(t, 1, strings.Count(drawn, "asks a person"), "%s\n%s", f, drawn)
	}
	d := graph.Describe(p)
	require.Equal(t, "approval", d.Asks)
	var asks []string
	for _, n := range d.Steps {
		asks = append(asks, n.Asks)
	}
	require.Equal(t, []string{"", "approval", "approval", "ask", ""}, asks)
	require.Empty(t, graph.Describe(parse(t, small)).Asks)
}
