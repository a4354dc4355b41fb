package chaos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
)

// Keep puts rows into the file of all results, in the place of earlier ones of the same scenarios and settings, and
// gives all rows in the order of the scenarios, each with the shipped settings last.
func Keep(path string, rows []Row) ([]Row, error) {
	var all []Row
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, row := range rows {
		all = append(slices.DeleteFunc(all, func(r Row) bool {
			return r.Scenario == row.Scenario && r.Shipped == row.Shipped
		}), row)
	}
	place := func(r Row) int {
		at := 2 * slices.IndexFunc(Scenarios(), func(s Scenario) bool { return s.Name == r.Scenario })
		if r.Shipped {
			at++
		}
		return at
	}
	slices.SortStableFunc(all, func(a, b Row) int { return place(a) - place(b) })
	text, err = json.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil, err
	}
	return all, os.WriteFile(path, append(text, '\n'), 0o644)
}

// The lines of the document between which the table stands.
const (
	tableBegin = "<!-- chaos: written by make chaos -->"
	tableEnd   = "<!-- chaos: end -->"
)

// WriteTable puts the table of the rows between its markers in a document.
func WriteTable(path string, rows []Row) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(text, []byte(tableBegin))
	_, after, ended := bytes.Cut(rest, []byte(tableEnd))
	if !ok || !ended {
		return fault.New(fault.InvalidConfig, "%s has no markers %q and %q", path, tableBegin, tableEnd)
	}
	return os.WriteFile(path, fmt.Appendf(nil, "%s%s\n%s%s%s", before, tableBegin, table(rows), tableEnd, after), 0o644)
}

func table(rows []Row) string {
	var b strings.Builder
	b.WriteString("\n| scenario | fault | settings | injections | runs checked | executions | violations | figures | when, commit |\n|---|---|---|---:|---:|---:|---:|---|---|\n")
	for _, r := range rows {
		where, settings := "", r.Settings.String()
		if r.Shipped {
			settings = "**shipped**: " + settings
		}
		if !r.Namespaces {
			where = ", loopback"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %d | %d | %s | %s, %s, %d s%s%s |\n", r.Scenario, r.Fault, settings,
			r.Injections, r.Runs, r.Executions, len(r.Violations),
			strings.Join(r.Figures, "; "), r.When.Format("2006-01-02"), r.Commit, r.Seconds, where, r.loaded())
	}
	if len(rows) > 0 {
		fmt.Fprintf(&b, "\nMachine: %s.\n", rows[len(rows)-1].Machine)
	}
	b.WriteString("\n")
	return b.String()
}

// loaded says what else the machine had to do; nothing where that is not known.
func (r Row) loaded() string {
	if r.Load == 0 {
		return ""
	}
	return fmt.Sprintf(", load %.1f before", r.Load)
}

// load returns how many processes wanted the machine's cores in the last minute; 0 where that is not known.
func load() (average float64) {
	text, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		_, _ = fmt.Sscan(string(text), &average) // nothing there: not known
	}
	return average
}

// Machine names the machine, and Commit the version of the code, with + where it was changed since.
func Machine() string {
	model := runtime.GOARCH
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d cores of %s, %s, %s", runtime.NumCPU(), model, runtime.Version(), runtime.GOOS)
}

// Commit returns the version of the code in the current folder, with a + where something was changed since. Documents
// and figures do not count: each scenario writes them.
func Commit() string {
	out, err := exec.Command("git", "describe", "--always").Output()
	if err != nil {
		return "unknown"
	}
	commit := strings.TrimSpace(string(out))
	if exec.Command("git", "diff", "--quiet", "HEAD", "--", ":/", ":(top,exclude)docs", ":(top,exclude)bench").
		Run() != nil {
		commit += "+"
	}
	return commit
}

// Print writes a row for a person who waits for it.
func (r Row) Print(out io.Writer) {
	fmt.Fprintf(out, "%s (%v): %d injections, %d runs, %d executions, %d violations\n", r.Scenario, r.Settings,
		r.Injections, r.Runs, r.Executions, len(r.Violations))
	for _, f := range r.Figures {
		fmt.Fprintln(out, "  ", f)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Counts)) {
		if !strings.HasPrefix(name, "most leases") {
			fmt.Fprintf(out, "   %s: %d\n", name, r.Counts[name])
		}
	}
	for i, v := range r.Violations {
		if i == 20 {
			fmt.Fprintf(out, "   … and %d more\n", len(r.Violations)-i)
			break
		}
		fmt.Fprintln(out, "   VIOLATION", v)
	}
}
