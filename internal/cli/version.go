package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/internal/version"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  stepjet version -o json",
		Args:    exactly(),
		RunE: a.work(func(*cobra.Command, []string) error {
			version, commit := a.version()
			if a.json() {
				return a.printJSON(struct {
					Version string `json:"version"`
					Commit  string `json:"commit,omitempty"`
					Go      string `json:"go"`
				}{version, commit, runtime.Version()})
			}
			text := "stepjet " + version
			if commit != "" {
				text += " (" + commit + ")"
			}
			_, err := fmt.Fprintln(a.stdout, text+", "+runtime.Version())
			return err
		}),
	}
}

// version returns the version, which a test may set, and the commit.
func (a *app) version() (name, commit string) {
	name, commit = version.Of()
	if a.env.Version != "" {
		name = a.env.Version
	}
	return name, commit
}
