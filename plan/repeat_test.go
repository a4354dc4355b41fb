package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/plan"
)

// loop is a plan whose step "p" is a loop; step "a" comes before it.
func loop(fields string) []byte {
	return []byte(steps(`{"id":"a","tool":"echo"},{"id":"p",` + fields + `}`))
}

func TestALoopIsRead(t *testing.T) {
	t.Parallel()
	p, r := plan.Parse(loop(`"tool":"echo","retry":{"max_attempts":2},"arguments":{"n":"$index","from":"$last.next || \"start\"","a":"$ref:a"},
		"repeat":{"until":"$last.next == null and $ref:a.ok","max":20,"every":"2s","collect":true}`), nil)
	require.Empty(t, r.Problems)
	require.Empty(t, r.Warnings)
	require.Equal(t, []string{plan.Language2}, p.Needs())
	s := &p.Steps[1]
	require.Equal(t, []any{20, 2 * time.Second, true}, []any{s.Repeat.Max, s.Repeat.Every, s.Repeat.Collect})
	require.Equal(t, []int{0}, s.Deps)
	require.Equal(t, []int{0}, s.Repeat.Until.Reads)
	require.True(t, s.Repeat.Until.TakesLast)
	require.Empty(t, s.Tool, "the iterations call it")
	each := s.Does()
	require.Equal(t, "echo", each.Tool)
	require.Equal(t, 2, each.Retry.MaxAttempts)
	require.Equal(t, "until $last.next == null and $ref:a.ok, at most 20 times, every 2s", s.Repeat.Text())
	require.Same(t, &p.Steps[0], p.Steps[0].Does())

	p, r = plan.Parse(loop(`"tool":"echo","repeat":{}`), nil)
	require.Empty(t, r.Problems)
	require.Equal(t, plan.Repeat{Max: 100}, *p.Steps[1].Repeat)
}

type turn struct {
	last  string
	index int
}

func (t turn) Last() ([]byte, bool) { return []byte(t.last), t.last != "" }

func (t turn) Index() int { return t.index }

func TestWhatAnIterationKnows(t *testing.T) {
	t.Parallel()
	p, r := plan.Parse(loop(`"tool":"echo","arguments":{"all":"$last","n":"$index","next":"$last.next","or":"$last.x || $index || 0","text":"$$last"},
		"repeat":{"until":"$index >= 2 or $last.next == 7"}`), nil)
	require.Empty(t, r.Problems)
	nothing := func(int) ([]byte, bool) { return nil, false }
	until := p.Steps[1].Repeat.Until
	for _, x := range []struct {
		turn  turn
		args  string
		until bool
	}{
		{turn{"null", 0}, `{"all":null,"n":0,"next":null,"or":0,"text":"$last"}`, false},
		{turn{`{"next":7}`, 1}, `{"all":{"next":7},"n":1,"next":7,"or":1,"text":"$last"}`, true},
		{turn{`{"next":8,"x":"y"}`, 2}, `{"all":{"next":8,"x":"y"},"n":2,"next":8,"or":"y","text":"$last"}`, true},
	} {
		args, err := p.NewResolver().In(x.turn).Arguments(1, nothing)
		require.Nil(t, err)
		require.Equal(t, x.args, string(args))
		holds, err := until.HoldsOf(p.NewResolver().In(x.turn), nil, nil, nothing)
		require.Nil(t, err)
		require.Equal(t, x.until, holds)
	}
	_, err := p.NewResolver().In(turn{`"a text"`, 1}).Arguments(1, nothing)
	require.Equal(t, "unresolved_ref", string(err.Code), "there is no way into a text")
	require.Contains(t, err.Message, "$last.next")
}

func TestAnItemMayEndItsLoop(t *testing.T) {
	t.Parallel()
	p, r := plan.Parse(loop(`"tool":"echo","for_each":{"in":[1,2],"as":"x"},"arguments":{"x":"$ref:x"},"repeat":{"until":"$last.x >= $ref:x"}`), nil)
	require.Empty(t, r.Problems)
	holds, err := p.Steps[1].Repeat.Until.HoldsOf(p.NewResolver().In(turn{`{"x":2}`, 0}), []byte("2"), nil, nil)
	require.Nil(t, err)
	require.True(t, holds)
}

func TestFindIterations(t *testing.T) {
	t.Parallel()
	p, r := plan.Parse([]byte(steps(`{"id":"one","tool":"echo","repeat":{"max":3}},
		{"id":"each","for_each":{"in":[1]},"repeat":{"max":2},"plan":{"steps":[{"id":"in","tool":"t","repeat":{"max":2}}]}}`)), nil)
	require.Empty(t, r.Problems)
	for token, tool := range map[string]string{"one/=2": "echo", "each=0/=1/in/=0": "t", "each=0/=1": "", "each=0/=1/in": ""} {
		s, isItem, ok := p.Find(token)
		require.True(t, ok, token)
		require.False(t, isItem, token)
		require.Equal(t, tool, s.Tool, token)
	}
	for _, token := range []string{"one/=3", "each/=0", "each=0/in", "one/x", "each=0/=1/in/=2", "each=0/=0/=0", "one/=0/=0"} {
		_, _, ok := p.Find(token)
		require.False(t, ok, token)
	}
}

// Every way in which a loop can be wrong, where it is said to be, and all at once.
func TestLoopsThatAreWrong(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]string{
		`"tool":"echo","repeat":3`:                                                          `invalid_value /steps/1/repeat write "repeat": {"max": 3}`,
		`"tool":"echo","repeat":"$last.ok"`:                                                 `invalid_value /steps/1/repeat write "repeat": {"until": "$last.ok"}`,
		`"tool":"echo","repeat":[1]`:                                                        `invalid_value /steps/1/repeat for_each`,
		`"tool":"echo","repeat":{"max":0}`:                                                  `invalid_value /steps/1/repeat/max`,
		`"tool":"echo","repeat":{"max":10001}`:                                              `invalid_value /steps/1/repeat/max`,
		`"tool":"echo","repeat":{"max":1.5}`:                                                `invalid_value /steps/1/repeat/max`,
		`"tool":"echo","repeat":{"every":5}`:                                                `invalid_value /steps/1/repeat/every`,
		`"tool":"echo","repeat":{"every":"0s"}`:                                             `invalid_value /steps/1/repeat/every`,
		`"tool":"echo","repeat":{"collect":"yes"}`:                                          `invalid_value /steps/1/repeat/collect`,
		`"tool":"echo","repeat":{"until":true}`:                                             `invalid_value /steps/1/repeat/until leave it out`,
		`"tool":"echo","repeat":{"until":"$last =="}`:                                       `invalid_condition /steps/1/repeat/until`,
		`"tool":"echo","repeat":{"until":"$index.x"}`:                                       `invalid_condition /steps/1/repeat/until write $index alone`,
		`"tool":"echo","repeat":{"until":"$ref:b.x"}`:                                       `unknown_ref /steps/1/repeat/until`,
		`"tool":"echo","repeat":{"until":"$ref:p.x"}`:                                       `cycle /steps/1/repeat/until`,
		`"tool":"echo","for_each":{"in":[1]},"repeat":{"until":"$status:item == 'failed'"}`: `invalid_ref /steps/1/repeat/until`,
		`"tool":"echo","repeat":{"times":3}`:                                                `unknown_field /steps/1/repeat/times write "max": 3`,
		`"tool":"echo","repeat":{"while":"$last.more"}`:                                     `unknown_field /steps/1/repeat/while`,
		`"tool":"echo","until":"$last.ok"`:                                                  `unknown_field /steps/1/until write "repeat": {"until": "$last.ok"}`,
		`"tool":"echo","arguments":{"x":"$last"}`:                                           `invalid_ref /steps/1/arguments/x`,
		`"tool":"echo","if":"$index > 2","repeat":{}`:                                       `invalid_condition /steps/1/if`,
		`"value":1,"repeat":{}`:                                                             `invalid_value /steps/1/repeat leave it out`,
		`"arguments":{"x":"$last"},"repeat":{},"plan":{"steps":[{"id":"b","tool":"t","arguments":{"x":"$last"}}]}`: `invalid_ref /steps/1/plan/steps/0/arguments/x`,
	} {
		p, r := plan.Parse(loop(fields), nil)
		require.Nil(t, p, fields)
		require.Len(t, r.Problems, 1, "%s: %v", fields, r.Problems)
		x := r.Problems[0]
		require.True(t, strings.HasPrefix(want, string(x.Code)+" "+x.Path), "%s: %v", fields, x)
		if hint := strings.TrimPrefix(want, string(x.Code)+" "+x.Path+" "); hint != want {
			require.Contains(t, x.Hint, hint, fields)
		}
		require.NotEmpty(t, x.Hint, "%s: %v", fields, x)
	}
	_, r := plan.Parse(loop(`"tool":"echo","repeat":{"max":0,"every":"soon","until":"$ref:nobody","collect":1}`), nil)
	require.Len(t, r.Problems, 4, "all at once: %v", r.Problems)
}

// A loop is around its iterations as a plan is around its steps.
func TestLoopsCountAmongThePlansAroundACall(t *testing.T) {
	t.Parallel()
	deep := func(plans int, fields string) []byte {
		return []byte(`{"steps":[` + strings.Repeat(`{"id":"p","plan":{"steps":[`, plans) + `{"id":"p","tool":"echo"` + fields + `}` + strings.Repeat(`]}}`, plans) + `]}`)
	}
	_, r := plan.Parse(deep(7, `,"repeat":{}`), nil)
	require.Empty(t, r.Problems)
	_, r = plan.Parse(deep(8, ``), nil)
	require.Empty(t, r.Problems)
	_, r = plan.Parse(deep(8, `,"repeat":{}`), nil)
	require.Len(t, r.Problems, 1)
	require.Equal(t, "limit_exceeded", string(r.Problems[0].Code))
}
