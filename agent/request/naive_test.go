package request

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/agent"
)

// naive renders requests from all rounds, each time from the first on: what Loop does with sizes and parts.
type naive struct {
	d      *agent.Definition
	rounds []naiveRound
	shown  [][]naiveTool // at the beginning of each round
	cache  map[string][]byte
}

type naiveRound struct {
	Round    int             `json:"round"`
	Cut      bool            `json:"cut,omitempty"`
	Messages []naiveMessage  `json:"messages,omitempty"`
	Changes  *naiveChanges   `json:"tool_changes,omitempty"`
	Plan     json.RawMessage `json:"plan,omitempty"`
	Records  []naiveRecord   `json:"records"`
}

type naiveMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Round   int    `json:"round"`
	ID      string `json:"id"`
}

type naiveTool struct {
	Name   string          `json:"name"`
	About  string          `json:"description"`
	Input  json.RawMessage `json:"inputSchema,omitempty"`
	Output json.RawMessage `json:"outputSchema,omitempty"`
}

type naiveChanges struct {
	Added []naiveTool `json:"added"`
	Gone  []string    `json:"gone"`
}

type naiveRecord struct {
	ID     string `json:"id"`
	Tool   string `json:"tool,omitempty"`
	Args   any    `json:"arguments,omitempty"`
	Status string `json:"status"`
	Result any    `json:"result,omitempty"`
	Bytes  int    `json:"bytes,omitempty"`
	MS     int64  `json:"ms"`
}

type naivePreview struct {
	Text  string `json:"text"`
	From  int    `json:"from"`
	To    int    `json:"to"`
	Bytes int    `json:"bytes"`
	More  string `json:"more,omitempty"`
}

func encoded(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// toolsOf lists what is shown, by name.
func toolsOf(f *agent.Facts) (all []naiveTool) {
	for _, s := range f.Shown() {
		at := 0
		for at < len(all) && all[at].Name < s.Name {
			at++
		}
		all = append(all[:at], append([]naiveTool{{s.Name, s.Description, s.InputSchema, s.OutputSchema}}, all[at:]...)...)
	}
	return all
}

func naiveDiff(now, before []naiveTool) *naiveChanges {
	c := &naiveChanges{[]naiveTool{}, []string{}}
	has := func(list []naiveTool, same func(naiveTool) bool) bool {
		for _, x := range list {
			if same(x) {
				return true
			}
		}
		return false
	}
	for _, x := range now {
		if !has(before, func(y naiveTool) bool { return bytes.Equal(encoded(x), encoded(y)) }) {
			c.Added = append(c.Added, x)
		}
	}
	for _, y := range before {
		if !has(now, func(x naiveTool) bool { return x.Name == y.Name }) {
			c.Gone = append(c.Gone, y.Name)
		}
	}
	if len(c.Added)+len(c.Gone) == 0 {
		return nil
	}
	return c
}

// end adds a round.
func (n *naive) end(r Round, said []Message, mode agent.Mode) {
	out := naiveRound{Round: len(n.rounds), Plan: r.Plan.JSON, Records: []naiveRecord{}}
	for _, m := range said {
		out.Messages = append(out.Messages, naiveMessage{"user", string(bytes.Trim(m.Content, `"`)), len(n.rounds), m.ID})
	}
	if i := len(n.rounds); i > 0 {
		out.Changes = naiveDiff(n.shown[i], n.shown[i-1])
	}
	for _, rec := range r.Records {
		x := naiveRecord{ID: rec.ID, Tool: rec.Tool, Status: rec.Status, MS: rec.MS}
		if rec.Arguments.JSON != nil {
			x.Args = json.RawMessage(rec.Arguments.JSON)
		}
		switch size := int(max(rec.Result.Bytes, int64(len(rec.Result.JSON)))); {
		case size > n.d.Context.ResultBytes:
			to := n.d.Context.ResultBytes
			for to > 0 && to < len(rec.Result.JSON) && rec.Result.JSON[to]&0xC0 == 0x80 {
				to--
			}
			p := naivePreview{Text: string(rec.Result.JSON[:to]), To: to, Bytes: size}
			if mode == agent.ModeTools || mode == agent.ModePlan {
				p.More = fmt.Sprintf("$ref:r%d.%s stands for all of it", out.Round, rec.ID)
			}
			x.Result, x.Bytes = p, size
		case size > 0:
			x.Result = json.RawMessage(rec.Result.JSON)
		}
		out.Records = append(out.Records, x)
	}
	n.rounds = append(n.rounds, out)
}

// head is what the request of the next round begins with, up to its own members, and how often it was cut.
func (n *naive) head(d *agent.Definition, input string) (string, int) {
	instructions, _ := d.Told([]byte(input))
	headOf := func(tools []naiveTool) string {
		return fmt.Sprintf(`{"instructions":%s,"input":%s,"outputSchema":{"type":"object"},"tools":%s`, encoded(instructions), input, encoded(tools))
	}
	tools := n.shown[0]
	from, cuts, fresh := 0, 0, 0
	write := func(i, from, fresh int) []byte {
		r := n.rounds[i]
		if i < from {
			r = naiveRound{Round: r.Round, Cut: true, Messages: r.Messages, Records: []naiveRecord{}}
			for _, rec := range n.rounds[i].Records {
				bytes := rec.Bytes
				if bytes == 0 && rec.Result != nil {
					bytes = len(encoded(rec.Result))
				}
				r.Records = append(r.Records, naiveRecord{ID: rec.ID, Tool: rec.Tool, Status: rec.Status, Bytes: bytes, MS: -1})
			}
			return bytes.ReplaceAll(encoded(r), []byte(`,"ms":-1`), nil)
		}
		if i <= fresh+1 && cuts > 0 {
			r.Changes = nil
		}
		return encoded(r)
	}
	rounds := func(end, from, fresh int) (all []string) {
		for i := range end {
			key := fmt.Sprint(i, i < from, i <= fresh+1 && cuts > 0)
			if n.cache[key] == nil {
				n.cache[key] = write(i, from, fresh)
			}
			all = append(all, string(n.cache[key]))
		}
		return all
	}
	sum := func(all []string) (size int) {
		for _, s := range all {
			size += len(s) + 1
		}
		return size
	}
	for end := 1; end <= len(n.rounds); end++ {
		head := len(headOf(tools)) + 1 // with its end
		total := d.Context.TotalBytes
		if sum(rounds(end, from, fresh)) <= total-head || end-from == 1 {
			continue
		}
		for first := true; from < end-1 && (first || sum(rounds(end, from, fresh)) > total/2-head); first = false {
			from++
		}
		cuts++
		fresh = end - 1
		if len(n.shown) > end && naiveDiff(n.shown[end], tools) != nil {
			tools = n.shown[end]
		}
	}
	return headOf(tools) + `,"rounds":[` + strings.Join(rounds(len(n.rounds), from, fresh), ",") + `]`, cuts
}

// On random histories the loop renders what comes out when all is rendered anew each time.
func TestALoopRendersWhatANaiveOneDoes(t *testing.T) {
	t.Parallel()
	cuts := 0
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		mode := []agent.Mode{agent.ModeTools, agent.ModePlan, agent.ModeCalls, agent.ModeCommands}[seed%4]
		d := define(t, strings.Replace(fmt.Sprintf(plain, mode), `"fetch",`, `{"tool":"fetch","in":["A"],"to":"B"},{"tool":"insert","as":"back","in":["B"],"to":"A"},`, 1)+
			`,"states":{"initial":"A"},"max_rounds":200,"context":{"result_bytes":600,"total_bytes":60000}`)
		input := `{"topic":"<tides> & \"moons\""}`
		w, n := newWorld(t, d, input), &naive{d: d, cache: map[string][]byte{}}
		n.shown = append(n.shown, toolsOf(w.facts))
		for round := range 40 + rnd.IntN(20) {
			var said []Message
			for i := range rnd.IntN(3) {
				said = append(said, Message{ID: fmt.Sprint(round, "-", i), Content: encoded(strings.Repeat("ä", rnd.IntN(9)))})
			}
			raw := w.whole(w.open(Now{}, said...))
			if len(w.loop.cut) > 0 && bytes.HasPrefix(w.loop.cut[0], []byte(`{"rounds"`)) {
				break // rounds are counted: TestTheOldestRoundsAreCounted
			}
			want, c := n.head(d, input)
			if at := common([]byte(want), raw); at < len(want) {
				require.Equal(t, want[max(0, at-60):min(len(want), at+60)], string(raw[max(0, at-60):min(len(raw), at+60)]), "seed %d, round %d", seed, round)
			}
			require.Len(t, w.cuts, c)
			require.True(t, bytes.HasPrefix(raw[len(want):], []byte(`,"messages":[`)))
			r := someRound(rnd, round)
			w.end(r, "")
			// the tools of the next round, for both
			n.end(r, said, mode)
			n.shown = append(n.shown, toolsOf(w.facts))
		}
		cuts += len(w.cuts)
	}
	require.Greater(t, cuts, 10, "cuts are made")
}

// someRound is a round of some calls, some of which open and close a facade or fail.
func someRound(rnd *rand.Rand, round int) Round {
	r := Round{Plan: Whole([]byte(`{"steps":[]}`))}
	for i := range rnd.IntN(10) {
		rec := Record{ID: fmt.Sprintf("s%d_%d", round, i), Status: "succeeded", MS: int64(rnd.IntN(100)),
			Tool: []string{"search", "fetch", "db", "analyze", "back"}[rnd.IntN(5)], Arguments: Whole([]byte(`{"q":"x"}`)),
			Result: Whole(encoded(strings.Repeat("öx", rnd.IntN(600))))}
		switch rnd.IntN(5) {
		case 0:
			rec.Status, rec.Result = NotRun, Value{}
		case 1: // in a blob
			rec.Result = Value{JSON: rec.Result.JSON, Bytes: int64(len(rec.Result.JSON))}
			if len(rec.Result.JSON) > 601 {
				rec.Result.JSON = rec.Result.JSON[:601]
			}
		}
		r.Records = append(r.Records, rec)
	}
	return r
}
