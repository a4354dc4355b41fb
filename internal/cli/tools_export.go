package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	forms "github.com/stepjet/stepjet/catalog"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
)

// exporting is what the flags of "tools export" say.
type exporting struct {
	form, tools string
	forms.Options
	meta, guide bool
}

func (a *app) toolsExportCommand() *cobra.Command {
	e := &exporting{}
	c := &cobra.Command{
		Use:   "export [TOOL]...",
		Short: "Print the tools in the form that a model's API takes",
		Long: `Prints the tools that plans of this tenant may call, in the form of an API: openai (chat
completions), openai-responses, anthropic or mcp. A name that the form doesn't allow is changed
in a way that never changes again; the description has the real one.

--meta prints execute_tool_plan instead: the tool by which a model hands in a whole plan, with
a schema of plans and a guide to writing good ones over these tools. Plans use the real names.
--guide prints that guide alone, for a system prompt.

Names, or beginnings of names with a * behind them, choose some of the tools.`,
		Example: `  stepjet tools export --form openai > tools.json
  stepjet tools export --form anthropic --meta
  stepjet tools export --guide --tools definitions.json
  stepjet tools export --guide search 'crm/*'`,
		RunE: a.work(func(cmd *cobra.Command, names []string) error { return a.export(cmd.Context(), e, names) }),
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&e.form, "form", string(forms.MCP), "`form`: openai, openai-responses, anthropic or mcp")
	f.BoolVar(&e.Strict, "strict", false, "schemas that the API holds the model to; null stands for absent")
	f.BoolVar(&e.meta, "meta", false, "print execute_tool_plan")
	f.BoolVar(&e.guide, "guide", false, "print the guide to writing plans")
	f.StringVar(&e.tools, "tools", "", "`file` of definitions to export in place of the registry")
	c.MarkFlagsMutuallyExclusive("meta", "guide")
	return c
}

func (a *app) export(ctx context.Context, e *exporting, names []string) error {
	tools, err := a.exportable(ctx, e.tools)
	if err == nil {
		tools, err = chosen(tools, names)
	}
	if err != nil {
		return err
	}
	var out []byte
	switch {
	case e.guide:
		out = []byte(forms.Guide(tools) + "\n")
	case e.meta:
		out, err = forms.Meta(forms.Form(e.form), tools, e.Options)
	default:
		out, err = forms.Export(forms.Form(e.form), tools, e.Options)
	}
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(out)
	return err
}

// exportable returns the definitions as they count: those of a file, or of the registry with what operators have
// overridden.
func (a *app) exportable(ctx context.Context, file string) ([]*tool.Definition, error) {
	if file != "" {
		return a.toolsFile(file)
	}
	registered, err := a.registered(ctx)
	if err != nil {
		return nil, err
	}
	tools := make([]*tool.Definition, len(registered))
	for i := range registered {
		tools[i] = registered[i].Effective()
	}
	return tools, nil
}

// chosen returns the tools that are named, in their order; all where none is.
func chosen(tools []*tool.Definition, names []string) (some []*tool.Definition, err error) {
	if len(names) == 0 {
		return tools, nil
	}
	used := map[string]bool{}
	for _, d := range tools {
		fits := false
		for _, name := range names {
			if prefix, some := strings.CutSuffix(name, "*"); name == d.Name || some && strings.HasPrefix(d.Name, prefix) {
				fits, used[name] = true, true
			}
		}
		if fits {
			some = append(some, d)
		}
	}
	for _, name := range names {
		if !used[name] {
			return nil, fault.New(fault.NotFound, "there is no tool %q for this tenant", name).WithHint("stepjet tools list shows those that there are")
		}
	}
	return some, nil
}
