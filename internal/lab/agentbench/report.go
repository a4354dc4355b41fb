package agentbench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/bench"
)

// mark is where the figures stand in docs/performance.md.
const mark = "agents: written by make bench-agents"

// kept are the figures of all parts that were measured.
type kept struct {
	rounds  *Rounds
	waiting *Waiting
	kills   *Calls
	herd    *Calls
	owners  *Calls
	// upgrades are of two versions.
	upgrades *Calls
	words    *Words
}

// WriteReport puts the figures that are kept in a folder between their marks in a document.
func WriteReport(folder, path string) error {
	var k kept
	err := errors.Join(read(folder, "rounds", &k.rounds), read(folder, "waiting", &k.waiting), read(folder, "kills", &k.kills),
		read(folder, "herd", &k.herd), read(folder, "owners", &k.owners), read(folder, "upgrades", &k.upgrades), read(folder, "words", &k.words))
	if err != nil {
		return err
	}
	return Insert(path, mark, k.markdown())
}

// Insert puts text between the marks of a name in a document.
func Insert(path, mark, markdown string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := "<!-- "+mark+" -->", "<!-- "+strings.Fields(mark)[0]+" end -->"
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fault.New(fault.InvalidConfig, "%s has no marks for the figures", path).
			WithHint("it needs the lines %s and %s", begin, end)
	}
	return os.WriteFile(path, []byte(before+begin+"\n\n"+markdown+"\n"+end+after), 0o644)
}

func read[T any](folder, part string, to **T) error {
	raw, err := os.ReadFile(filepath.Join(folder, "agents-"+part+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	*to = new(T)
	return json.Unmarshal(raw, *to)
}

// table writes lines of what was wanted and what was measured.
type table struct{ strings.Builder }

func (t *table) line(what, wanted, measured string, met bool) {
	if !met {
		measured = "**" + measured + "**"
	}
	fmt.Fprintf(t, "| %s | %s | %s |\n", what, wanted, measured)
}

func (t *table) most(what, unit string, most, measured float64) {
	t.line(what, fmt.Sprintf("≤ %g%s", most, unit), fmt.Sprintf("%.4g%s", measured, unit), measured <= most)
}

func stamp(s bench.Stamp) string {
	return fmt.Sprintf("%s, %s, %s", s.Time.UTC().Format("2006-01-02 15:04 MST"), s.Version, s.Machine)
}

func (k *kept) markdown() string {
	var t table
	if k.rounds != nil {
		fmt.Fprintf(&t, "Rounds: %s; %.1f processes wanted a processor when it began.\n\n", stamp(k.rounds.Stamp), k.rounds.Load)
	}
	t.WriteString("What is **bold** misses its target.\n\n| | wanted | measured |\n|---|---|---|\n")
	k.ofRounds(&t)
	k.ofMany(&t)
	k.ofLoops(&t)
	return t.String()
}

func (k *kept) ofRounds(t *table) {
	r := k.rounds
	if r == nil {
		return
	}
	for _, l := range r.Layouts {
		what, most := "round of a planner's call and three calls at once, p50", 1.2
		if l.Layout != bench.Separate.Part {
			what, most = "the same, flushed before each acknowledgement", 2.0
		}
		t.line(what, fmt.Sprintf("≤ %g ms", most), fmt.Sprintf("%.2f ms; %.2f where the planner reads all rounds", l.P50, l.Whole), l.P50 <= most)
	}
	t.most("round 1,000 beside round 10", "", 1.2, r.Late)
	for _, l := range append(append([]LoopCost{}, r.Loops...), r.Long, r.Chat) {
		t.most(fmt.Sprintf("loop of %d rounds: bytes written beyond twice its results, for each of %d records", l.Rounds, l.Written.Records),
			"", 2048, l.PerRecord)
	}
	t.most("chat of 100 rounds with results of 5 kB: written, its document too", " MB", 5, float64(r.Chat.Written.all())/1e6)
	t.line("200 rounds: part of the bytes read that the request before began with", "≥ 95 %", fmt.Sprintf("%.1f %%", 100*r.Long.Prefix), r.Long.Prefix >= 0.95)
	for _, p := range r.PerSecond {
		t.line(fmt.Sprintf("64 agents at once, %d calls a round", p.Calls), "≥ 1,500 rounds/s",
			fmt.Sprintf("%.0f rounds/s, %.2f CPU s for 1,000", p.Rate, p.CPU), p.Rate >= 1500)
	}
}

func (k *kept) ofMany(t *table) {
	if w := k.waiting; w != nil {
		t.line(fmt.Sprintf("%d agents that wait", w.Agents), "≤ 10 kB each",
			fmt.Sprintf("%.1f kB of the heap, %.1f kB once another has read them anew; %.1f kB resident", w.Live/1000, w.Again/1000, w.Each/1000), max(w.Live, w.Again) <= 10_000)
	}
	for _, x := range []struct {
		what  string
		calls *Calls
	}{{"kills -9 in every phase", k.kills}, {"1,000 agents at once, all of what runs them killed", k.herd},
		{"orchestrators of " + olderCommit + " and of this version in turns, each killed once the other is there", k.upgrades}} {
		if c := x.calls; c != nil {
			t.line(fmt.Sprintf("%s: %d kills, %d agents, %d recorded calls of planners", x.what, c.All, c.Agents, c.Planner), "0 made again whose record stood",
				fmt.Sprintf("%d; %d that were in flight", c.Repeated, c.Again), c.Repeated == 0)
		}
	}
	if w := k.words; w != nil {
		t.line(fmt.Sprintf("%d words to agents that end", w.Said), "each taken once or refused", fmt.Sprintf("%d taken, %d `already_finished`, %d else", w.Taken, w.Late, w.Wrong), w.Wrong == 0)
	}
	if c := k.owners; c != nil {
		t.line(fmt.Sprintf("an owner killed, %d times: the agent that stands still longest", c.Kills["an owner"]), "p99 ≤ 2.5 s",
			fmt.Sprintf("p50 %.2f s, p99 %.2f s", c.GoOnP50/1000, c.GoOnP99/1000), c.GoOnP99 <= 2500)
	}
}

func (k *kept) ofLoops(t *table) {
	if k.rounds == nil {
		return
	}
	t.WriteString("\nLoops of three calls a round with results of 500 bytes, whose planner puts each request together; written are names, headers and bodies of all messages.\n\n")
	t.WriteString("| rounds | round, p50 ms | records | ledger MB | parts MB | calls MB | document MB | read MB | prefix |\n|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, l := range k.rounds.Loops {
		w, mb := l.Written, 1e6
		fmt.Fprintf(t, "| %d | %.2f | %d | %.3f | %.3f | %.3f | %.3f | %.1f | %.1f %% |\n", l.Rounds, l.P50, w.Records, float64(w.Ledger)/mb,
			float64(w.Parts)/mb, float64(w.Calls)/mb, float64(w.History)/mb, float64(l.Input)/mb, 100*l.Prefix)
	}
}
