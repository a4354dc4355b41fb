// Package bench measures what the project itself tells of its speed: Stepjet against JetStream alone in turns, at
// scale, and the contracts of tools at work. Its figures are files of the folder bench, and parts of the documents.
package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
)

// Part is something that can be measured by itself; its figures are kept in a file of its name.
type Part struct {
	Name, Help string
	// Group of parts that are measured together.
	Group string
	// Within is how long the part may take, by far.
	Within time.Duration
	// Measure gives figures that can be written as JSON.
	Measure func(ctx context.Context, env Env, cfg Config, s Stamp) (any, error)
}

// The groups.
const (
	groupLayouts = "layouts"
	groupScale   = "scale"
	groupCore    = "core"
	reportOnly   = "report"
)

// Parts returns all, in their order.
func Parts() []Part {
	var all []Part
	for _, l := range Layouts {
		all = append(all, Part{l.Part, l.Title, groupLayouts, 20 * time.Minute,
			func(ctx context.Context, env Env, cfg Config, s Stamp) (any, error) {
				f, err := Ratios(ctx, env, l, cfg)
				if f != nil {
					f.Stamp = s
				}
				return f, err
			}})
	}
	return append(all,
		Part{"large", "one run of 10,000 steps at a time: a fan-out with join, a chain", groupScale, 15 * time.Minute,
			measureLarge},
		Part{"curve", "cost of a step with 1 to 100,000 runs in flight", groupScale, 15 * time.Minute, measureCurve},
		Part{"inflight", "100,000 runs that wait for a tool", groupScale, 15 * time.Minute, measureInFlight},
		Part{"waiting", "1,000 runs that wait for a day, beside 1,000 runs a second", groupScale, 15 * time.Minute, measureWaiting},
		Part{"people", "10,000 runs that wait for an answer, and a restart on them", groupScale, 15 * time.Minute, measurePeople},
		Part{"amendments", "one amendment of runs of 10, 1,000 and 9,000 steps against one more step of a plan", groupScale, 15 * time.Minute,
			measureAmending},
		Part{"backlog", "a million steps that wait, and a restart on them", groupScale, 15 * time.Minute, measureBacklog},
		Part{"retained", "speed beside 100,000 finished runs", groupScale, 15 * time.Minute, measureRetained},
		Part{"orchestrators", "what a second and third orchestrator cost", groupScale, 15 * time.Minute,
			measureOrchestrators},
		Part{"core", "reads Go benchmarks of the pure packages from standard input: make bench-core", groupCore,
			15 * time.Minute, readCore},
	)
}

// PartNames returns the names of all parts and groups.
func PartNames() []string {
	names := []string{groupLayouts, groupScale, groupCore, reportOnly}
	for _, p := range Parts() {
		if !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	return names
}

// PartsHelp explains the parts.
func PartsHelp() string {
	var b strings.Builder
	b.WriteString("Parts, by group; without any, those of the group layouts are measured:\n")
	group := ""
	for _, p := range Parts() {
		if p.Group != group {
			group = p.Group
			fmt.Fprintf(&b, "%s\n", group)
		}
		fmt.Fprintf(&b, "  %-14s %s\n", p.Name, p.Help)
	}
	return strings.TrimRight(b.String(), "\n")
}

// Choose returns the parts of these names and groups; "report" is none of them. Errors: InvalidConfig for an unknown
// name.
func Choose(names []string) (chosen []Part, err error) {
	if len(names) == 0 {
		names = []string{groupLayouts}
	}
	for _, name := range names {
		if name == reportOnly {
			continue
		}
		found := false
		for _, p := range Parts() {
			if p.Name == name || p.Group == name {
				chosen, found = append(chosen, p), true
			}
		}
		if !found {
			return nil, fault.New(fault.InvalidConfig, "there is nothing called %q to measure", name).
				WithHint("%s", strings.Join(PartNames(), ", "))
		}
	}
	return chosen, nil
}

// Keep writes the figures of a part to its file in a folder.
func Keep(dir, part string, figures any) error {
	b, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return err
	}
	return write(filepath.Join(dir, part+".json"), append(b, '\n'))
}

// kept reads the figures of a part; false where it was never measured.
func kept(dir, part string, figures any) (bool, error) {
	b, err := os.ReadFile(filepath.Join(dir, part+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(b, figures)
}

func write(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}
