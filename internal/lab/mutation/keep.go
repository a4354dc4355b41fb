package mutation

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
)

// kept is what is kept of a bug that was planted.
type kept struct {
	Caught  bool   `json:"caught"`
	By      string `json:"by,omitempty"` // the first test that failed
	Seconds int    `json:"seconds"`
	Commit  string `json:"commit"` // that it was planted into
}

// results are kept by the bugs' names.
type results map[string]kept

func (r result) kept() kept {
	return kept{Caught: r.caught, By: r.by, Seconds: int(r.took.Seconds()), Commit: commit()}
}

// commit returns the version of the code, with + where it was changed since.
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty=+").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// readKept reads the file of results; none, or one that isn't there, holds nothing.
func readKept(path string) (results, error) {
	all := results{}
	if path == "" {
		return all, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(text, &all)
}

// write writes the files that were asked for.
func (all results) write(o Options) error {
	if o.Results != "" {
		text, err := json.MarshalIndent(all, "", "  ")
		if err == nil {
			err = os.WriteFile(o.Results, append(text, '\n'), 0o644)
		}
		if err != nil {
			return err
		}
	}
	if o.Report == "" {
		return nil
	}
	return os.WriteFile(o.Report, []byte(all.table()), 0o644)
}

// table returns the report, in the order of the list. What is not on the list any more is left out.
func (all results) table() string {
	var b strings.Builder
	b.WriteString("# Bugs that the tests catch\n\nWritten by `make mutants`. Each row is a bug that was planted into the code by itself and the first test that failed with it; the same test passes without. The seconds are those of the tests, on a machine that may have been busy; of older rows those of a build, too.\n\n")
	b.WriteString("| | bug | in | caught by | seconds | commit |\n|---|---|---|---|---:|---|\n")
	caught, absent := 0, 0
	for _, m := range mutants {
		k, ok := all[m.name]
		if !ok {
			absent++
			fmt.Fprintf(&b, "| %s | %s | `%s` | not planted yet | | |\n", m.name, m.what, m.file)
			continue
		}
		by := "**nobody**"
		if k.Caught {
			by = "`" + k.By + "`"
			caught++
		}
		fmt.Fprintf(&b, "| %s | %s | `%s` | %s | %d | %s |\n", m.name, m.what, m.file, by, k.Seconds, k.Commit)
	}
	fmt.Fprintf(&b, "\n%d bugs: %d caught, %d noticed by nobody, %d not planted yet.\n", len(mutants), caught, len(mutants)-caught-absent, absent)
	return b.String()
}
