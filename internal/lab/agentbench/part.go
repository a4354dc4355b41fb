package agentbench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/bench"
)

// Env is what measuring needs of its surroundings. Extra is not the caller's to set.
type Env struct {
	bench.Env
	// Progress takes one line for each measurement.
	Progress func(line string)
}

// Part is something that can be measured by itself; its figures are kept in agents-NAME.json.
type Part struct {
	Name, Help string
	measure    func(ctx context.Context, env Env, scale float64, s bench.Stamp) (any, error)
}

// Parts are all, in their order.
func Parts() []Part {
	return []Part{
		{"rounds", "what a round takes and writes, early and late in a loop, and how many go a second", measureRounds},
		{"waiting", "10,000 agents that wait", measureWaiting},
		{"kills", "1,000 kills -9 of orchestrators and workers, before and after everything that they do for a round", measureKills},
		{"herd", "1,000 agents at once, and kills -9 of all that runs them", measureHerd},
		{"owners", "how long agents stand still when one of three orchestrators is killed", measureOwners},
		{"upgrades", "orchestrators of an older version and of this one, in turns; builds the older one from git", measureUpgrades},
		{"words", "10,000 words that are said while agents end", measureWords},
	}
}

// Measure measures a part, scale times as much as it says, and keeps its figures in a folder; "" for nowhere.
func (p Part) Measure(ctx context.Context, env Env, scale float64, s bench.Stamp, folder string) error {
	f, err := p.measure(ctx, env, scale, s)
	if err != nil || folder == "" {
		return err
	}
	body, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "agents-"+p.Name+".json"), append(body, '\n'), 0o644)
}

// reportOnly measures nothing.
const reportOnly = "report"

// Choose returns the parts of these names, all where there are none; "report" is none of them. Errors: InvalidConfig for an unknown name.
func Choose(names []string) (chosen []Part, err error) {
	for _, p := range Parts() {
		if len(names) == 0 {
			chosen = append(chosen, p)
		}
	}
	for _, name := range names {
		found := name == reportOnly
		for _, p := range Parts() {
			if p.Name == name {
				chosen, found = append(chosen, p), true
			}
		}
		if !found {
			return nil, fault.New(fault.InvalidConfig, "there is nothing called %q to measure", name).WithHint("%s", Help())
		}
	}
	return chosen, nil
}

// Help explains the parts.
func Help() (text string) {
	for _, p := range Parts() {
		text += fmt.Sprintf("  %-9s %s\n", p.Name, p.Help)
	}
	return text + "  " + reportOnly + "    measures nothing: for --report\n"
}
