// Package agentpeers runs the loop of "lab agents" on other engines beside Stepjet, in turns in one session: LangGraph.js
// with its checkpointer on SQLite, and Restate with its TypeScript SDK, from npm. Both run tools in the process of the
// loop; Stepjet's are called in the process of a worker. The scripts are in the folder npm; "make agent-peers" installs
// what they need and measures.
//
// Restate's server is started in a network of its own, which has nothing but a loopback: it looks for its newest version
// on the net otherwise, telemetry or not.
package agentpeers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/bench"
	"github.com/stepjet/stepjet/internal/lab/agentbench"
)

// Mark is where the figures stand in docs/performance.md.
const Mark = "agent-peers: written by make agent-peers"

// resultBytes are those of each of a round's three results.
const resultBytes = 500

// Lengths are the rounds of the loops.
var Lengths = []int{10, 100, 1000}

// Peers is what the engines came to: a file of bench/.
type Peers struct {
	bench.Stamp
	Load float64 `json:"load_before"`
	// Turns of each engine; medians count.
	Turns   int    `json:"turns"`
	Results int    `json:"result_bytes_a_round"`
	Loops   []Loop `json:"loops"`
	// Crashes are what was called once more after a kill -9 in the middle of a round.
	Crashes []Crash `json:"crashes"`
}

// Loop is a loop of one engine.
type Loop struct {
	Engine string `json:"engine"`
	Rounds int    `json:"rounds"`
	// P50 is the median time of a round, Late that of the last ten, in milliseconds.
	P50  float64 `json:"round_p50_ms"`
	Late float64 `json:"last_rounds_p50_ms"`
	// Written are the bytes of what was stored: of Stepjet all messages, of LangGraph checkpoints and writes, of Restate the
	// journal.
	Written int64   `json:"written_bytes"`
	Prefix  float64 `json:"prefix"`
}

// Crash is what a killed loop called in all.
type Crash struct {
	Engine string `json:"engine"`
	// Planner and Tool are the calls that were made again although they had returned.
	Planner int `json:"planner_again"`
	Tool    int `json:"tool_again"`
}

// figures are what one run of a loop comes to.
type figures struct {
	Micros  []int64 `json:"us"`
	Input   int64   `json:"input"`
	Prefix  int64   `json:"prefix"`
	Written int64   `json:"written"`
}

// engine runs loops of several lengths.
type engine struct {
	name string
	run  func(ctx context.Context, lengths []int) ([]figures, error)
	// once and never are the lengths from which on it runs in the first turn alone, and not at all; 0 for none: what each
	// round of it stores grows with the rounds before.
	once, never int
}

// of returns the lengths that it runs in a turn.
func (e engine) of(lengths []int, turn int) (all []int) {
	for _, n := range lengths {
		if (e.never == 0 || n < e.never) && (e.once == 0 || n < e.once || turn == 0) {
			all = append(all, n)
		}
	}
	return all
}

// Measure runs all engines in turns. folder has the scripts and what they need.
func Measure(ctx context.Context, env agentbench.Env, folder string, turns int, lengths []int, s bench.Stamp) (*Peers, error) {
	scripts, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	p := &peers{env: env, scripts: scripts}
	out := &Peers{Stamp: s, Load: agentbench.Load(), Turns: turns, Results: 3 * resultBytes}
	engines := []engine{
		{"Stepjet", p.stepjet(false), 0, 0}, {"Stepjet, flushed", p.stepjet(true), 0, 0},
		{"LangGraph.js, SQLite, async", p.langgraph("async"), 1000, 0}, {"LangGraph.js, SQLite, sync", p.langgraph("sync"), 0, 1000},
		{"Restate", p.restate, 0, 0},
	}
	came := map[string]map[int][]figures{}
	for turn := range turns {
		for _, e := range engines {
			of := e.of(lengths, turn)
			all, err := e.run(ctx, of)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", e.name, err)
			}
			if came[e.name] == nil {
				came[e.name] = map[int][]figures{}
			}
			for i, f := range all {
				came[e.name][of[i]] = append(came[e.name][of[i]], f)
			}
			env.Progress(fmt.Sprintf("turn %d: %s", turn+1, e.name))
		}
	}
	for _, e := range engines {
		for _, rounds := range e.of(lengths, 0) {
			l := loopOf(e.name, rounds, came[e.name][rounds])
			env.Progress(fmt.Sprintf("%-28s %5d rounds: p50 %8.2f ms, the last ten %8.2f; written %8.3f MB; prefix %.1f %%", l.Engine, l.Rounds, l.P50, l.Late, float64(l.Written)/1e6, 100*l.Prefix))
			out.Loops = append(out.Loops, l)
		}
	}
	out.Crashes, err = p.crashes(ctx)
	return out, err
}

// loopOf takes the medians of several turns.
func loopOf(name string, rounds int, turns []figures) Loop {
	var p50, late []float64
	l := Loop{Engine: name, Rounds: rounds}
	for _, f := range turns {
		p50 = append(p50, millis(f.Micros))
		late = append(late, millis(f.Micros[len(f.Micros)-min(10, len(f.Micros)):]))
		l.Written, l.Prefix = f.Written, float64(f.Prefix)/float64(f.Input)
	}
	l.P50, l.Late = bench.Quantile(p50, 0.5), bench.Quantile(late, 0.5)
	return l
}

// millis is the median in milliseconds.
func millis(micros []int64) float64 {
	sorted := slices.Sorted(slices.Values(micros))
	return float64(sorted[len(sorted)/2]) / 1000
}

type peers struct {
	env     agentbench.Env
	scripts string
}

func (p *peers) stepjet(flushed bool) func(context.Context, []int) ([]figures, error) {
	return func(ctx context.Context, lengths []int) (all []figures, err error) {
		loops, err := agentbench.Loops(ctx, p.env, flushed, lengths, resultBytes)
		for _, l := range loops {
			all = append(all, figures{l.Micros, l.Input, l.Prefix, l.Written})
		}
		return all, err
	}
}

// script runs a script and reads a document of each line that it prints.
func (p *peers) script(ctx context.Context, vars []string, argv ...string) (all []figures, err error) {
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Dir, c.Env = p.scripts, append(os.Environ(), vars...)
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, fmt.Sprintf("%s: %.800s", strings.Join(argv, " "), said.String()))
	}
	for line := range bytes.Lines(out) {
		var f figures
		if err := json.Unmarshal(line, &f); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

func (p *peers) langgraph(durability string) func(context.Context, []int) ([]figures, error) {
	return func(ctx context.Context, lengths []int) (all []figures, err error) {
		for _, rounds := range lengths {
			dir, err := os.MkdirTemp(p.env.Dir, "langgraph-")
			if err != nil {
				return nil, err
			}
			f, err := p.script(ctx, nil, "node", "langgraph.mjs", filepath.Join(dir, "db"), strconv.Itoa(rounds), strconv.Itoa(resultBytes), durability)
			if err != nil {
				return nil, err
			}
			all = append(all, f...)
			if err := os.RemoveAll(dir); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
}

func (p *peers) restate(ctx context.Context, lengths []int) ([]figures, error) {
	return p.restateIn(ctx, nil, "", lengths)
}

// restateIn runs the server in a folder, "" for one of its own.
func (p *peers) restateIn(ctx context.Context, vars []string, folder string, lengths []int) ([]figures, error) {
	if folder == "" {
		dir, err := os.MkdirTemp(p.env.Dir, "restate-")
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		folder = dir
	}
	run := fmt.Sprintf("ip link set lo up && exec node restate-run.mjs %s %d", folder, resultBytes)
	for _, n := range lengths {
		run += " " + strconv.Itoa(n)
	}
	return p.script(ctx, vars, "unshare", "-n", "sh", "-c", run)
}

// crashRound is the round in whose middle a loop is killed: its planner's answer and its first tool's result are there.
const crashRounds, crashRound = 6, "3"

// crashes kills each peer once, lets it go on, and counts what was called twice.
func (p *peers) crashes(ctx context.Context) (all []Crash, err error) {
	die := []string{"DIE_IN_ROUND=" + crashRound}
	for _, durability := range []string{"async", "sync", "exit"} {
		dir, err := os.MkdirTemp(p.env.Dir, "crash-")
		if err != nil {
			return nil, err
		}
		argv := []string{"node", "langgraph.mjs", filepath.Join(dir, "db"), strconv.Itoa(crashRounds), strconv.Itoa(resultBytes), durability, filepath.Join(dir, "notes")}
		if _, err := p.script(ctx, die, argv...); err == nil {
			return nil, fault.New(fault.Internal, "LangGraph was not killed")
		}
		if _, err := p.script(ctx, nil, argv...); err != nil {
			return nil, err
		}
		c, err := crashOf("LangGraph.js, SQLite, "+durability, filepath.Join(dir, "notes"))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	dir, err := os.MkdirTemp(p.env.Dir, "crash-")
	if err != nil {
		return nil, err
	}
	if _, err := p.restateIn(ctx, die, dir, []int{crashRounds}); err != nil {
		return nil, err
	}
	c, err := crashOf("Restate", filepath.Join(dir, "notes"))
	all = append(all, c)
	for _, c := range all {
		p.env.Progress(fmt.Sprintf("%-28s after a kill -9: %d calls of the planner and %d of tools made again that had returned", c.Engine, c.Planner, c.Tool))
	}
	return all, err
}

// crashOf reads what was called.
func crashOf(name, notes string) (c Crash, err error) {
	c.Engine = name
	raw, err := os.ReadFile(notes)
	if err != nil {
		return c, err
	}
	times := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		times[line]++
	}
	for line, n := range times {
		if strings.HasPrefix(line, "planner") {
			c.Planner += n - 1
		} else {
			c.Tool += n - 1
		}
	}
	if len(times) < 4*crashRounds {
		return c, fault.New(fault.Internal, "%s called only %d things", name, len(times))
	}
	return c, nil
}

// Markdown is the figures as a table.
func (p *Peers) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s, %s; %d turns, medians; %.1f processes wanted a processor when it began.\n\n", p.Time.UTC().Format("2006-01-02 15:04 MST"), p.Version, p.Machine, p.Turns, p.Load)
	b.WriteString("| | rounds | round, p50 ms | the last ten, p50 ms | written MB | over results | prefix |\n|---|---:|---:|---:|---:|---:|---:|\n")
	for _, l := range p.Loops {
		fmt.Fprintf(&b, "| %s | %d | %.2f | %.2f | %.3f | %.1f × | %.1f %% |\n", l.Engine, l.Rounds, l.P50, l.Late, float64(l.Written)/1e6,
			float64(l.Written)/float64(l.Rounds*p.Results), 100*l.Prefix)
	}
	b.WriteString("\n| killed with kill -9 in the middle of a round | planner's calls made again that had returned | tools' |\n|---|---:|---:|\n")
	for _, c := range slices.SortedFunc(slices.Values(p.Crashes), func(a, b Crash) int { return cmp.Compare(a.Planner, b.Planner) }) {
		fmt.Fprintf(&b, "| %s | %d | %d |\n", c.Engine, c.Planner, c.Tool)
	}
	return b.String()
}
