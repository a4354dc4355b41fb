package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  stepjet version -o json",
		Args:    exactly(),
		RunE: a.work(func(*cobra.Command, []string) error {
			version, commit := buildOf(a.env.Version)
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

// buildOf gives the version, as it was set or as the module was built, and the commit.
func buildOf(set string) (version, commit string) {
	version = set
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, ""
	}
	if version == "" {
		version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			commit = s.Value[:min(12, len(s.Value))]
		}
	}
	return version, commit
}
