package cli

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/agentcheck"
	"github.com/stepjet/stepjet/internal/dryrun"
	"github.com/stepjet/stepjet/internal/hosted"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// maxPlanFile is the most that is read of a plan: one byte more than any plan may have, so that the parser can say so.
const maxPlanFile = 1_032_192 + 1

// maxToolsFile is the most that is read of a file of tool definitions.
const maxToolsFile = 64 << 20

// readFile reads a file, or standard input for "-", up to a number of bytes. Errors: InvalidConfig naming the file.
func (a *app) readFile(name string, most int64) ([]byte, error) {
	in := a.env.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, unreadable(name, err)
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	body, err := io.ReadAll(io.LimitReader(in, most))
	if err != nil {
		return nil, unreadable(name, err)
	}
	return body, nil
}

func unreadable(name string, err error) error {
	f := fault.New(fault.InvalidConfig, "%s can't be read", shown(name))
	f.Cause = err
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return f.WithHint("%v", err)
}

// shown is a file's name as it is told to people.
func shown(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}

// catalog is the tools that a plan is checked against.
type catalog struct {
	tools map[string]plan.Tool
	names []string
	rules dryrun.Rules // what their contracts ask people for

	definitions map[string]*tool.Definition
}

// Definition returns that of a tool.
func (c *catalog) Definition(name string) (*tool.Definition, bool) {
	d, ok := c.definitions[name]
	return d, ok
}

// InlineAgent reads an agent that a plan defines itself.
func (c *catalog) InlineAgent(_, step string, definition []byte) (plan.Tool, plan.Report) {
	d, r := agentcheck.Inline(step, definition, agentcheck.Against(c))
	if d == nil {
		return plan.Tool{}, r
	}
	t, _, _ := planTool(d) // what is wrong with it is told
	return t, r
}

func (c *catalog) Lookup(name string) (plan.Tool, bool) {
	t, ok := c.tools[name]
	return t, ok
}

func (c *catalog) Names() []string { return c.names }

// newCatalog compiles the schemas of definitions. Errors: InvalidTool.
func newCatalog(definitions []*tool.Definition) (*catalog, error) {
	c := &catalog{tools: make(map[string]plan.Tool, len(definitions)), rules: dryrun.Rules{}, definitions: map[string]*tool.Definition{}}
	for _, d := range definitions {
		t, rule, err := planTool(d)
		if err != nil {
			return nil, fault.As(err)
		}
		c.rules[d.Name], c.definitions[d.Name] = rule, d
		if _, twice := c.tools[d.Name]; !twice {
			c.names = append(c.names, d.Name)
		}
		c.tools[d.Name] = t
	}
	return c, nil
}

// planTool returns what a plan has to know of a tool, and which calls of it wait for a person.
func planTool(d *tool.Definition) (t plan.Tool, rule tool.Approval, err error) {
	if t.Input, err = d.Input(); err != nil {
		return t, "", err
	}
	t.Output, _ = d.Output() // one that can't be used is none; whoever read the definition was told
	c, err := d.Contract()
	t.DependsOn, t.Approval, t.Plan = c.DependsOn, c.Approval != "", d.Plan
	return t, c.Approval, err
}

// toolsFile reads a file of tool definitions: an array in MCP form, or what a toolworker reads.
func (a *app) toolsFile(name string) ([]*tool.Definition, error) {
	raw, err := a.readFile(name, maxToolsFile)
	if err != nil {
		return nil, err
	}
	d, err := tool.ParseDefinitions(raw)
	if err != nil {
		if parts, _ := tool.SplitDefinitions(raw); !slices.ContainsFunc(parts, forToolworker) {
			return nil, flawed(name, err)
		}
		f, err := a.toolworkerFile(name, raw)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return f.Definitions(), nil
	}
	for _, one := range d {
		a.warnOf(one)
	}
	return d, nil
}

// flawed names a file with tools that are not valid; several flaws stand one a line, each with what to write.
func flawed(file string, err error) *fault.Error {
	flaws := tool.FlawsOf(err)
	if len(flaws) < 2 {
		return named(file, err)
	}
	return fault.New(fault.InvalidTool, "%s has tools that are not valid:\n%v", shown(file), hosted.Problems(flaws))
}

// toolworkerFile reads the tools file of a toolworker, and passes on what it warns of.
func (a *app) toolworkerFile(name string, raw []byte) (*hosted.File, error) {
	f, err := hosted.Parse(raw, filepath.Dir(name))
	if err != nil {
		return nil, fault.New(fault.InvalidTool, "%s is no tools file of a toolworker:\n%v", shown(name), err)
	}
	for _, warning := range f.Warnings() {
		a.say("%s %s", a.errStyle.yellow("warning"), oneLine(warning))
	}
	return f, nil
}

// warnOf says what of a definition is of no use.
func (a *app) warnOf(d *tool.Definition) {
	for _, w := range d.Warnings() {
		a.say("%s %s", a.errStyle.yellow("warning"), oneLine(warningText(d.Name, w)))
	}
}

// warningText is a warning of a definition in one line.
func warningText(name string, w fault.Problem) string {
	text := name + ", " + w.Path + ": " + w.Message
	if w.Hint != "" {
		text += "; " + w.Hint
	}
	if !strings.HasPrefix(w.Path, "/outputSchema") {
		return text
	}
	return text + "; plans and results are not checked against it"
}

// asCatalog keeps a nil pointer from becoming a catalog without tools.
func asCatalog(c *catalog) plan.Catalog {
	if c == nil {
		return nil
	}
	return c
}

func named(file string, err error) *fault.Error {
	f := *fault.As(err)
	f.Message = shown(file) + ": " + f.Message
	return &f
}

// forToolworker reports whether a part of a file says how a toolworker is to execute a tool.
func forToolworker(raw json.RawMessage) bool {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return false
	}
	return m["builtin"] != nil || m["exec"] != nil || m["http"] != nil
}
