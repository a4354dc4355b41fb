package starter

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/fault"
)

// Terminal is what the command needs of the program that it belongs to.
type Terminal struct {
	// Work wraps what a command does: its errors are shown, and end it with their exit codes.
	Work func(func(*cobra.Command, []string) error) func(*cobra.Command, []string) error
	// Say tells a person something, beside the output.
	Say func(format string, args ...any)
	// JSON says that a document is wanted, and Document writes it.
	JSON     func() bool
	Document func(any) error
	// Print writes to the output.
	Print func(text string) error
}

// Command returns the command.
func Command(t Terminal) *cobra.Command {
	var source string
	c := &cobra.Command{
		Use:   "init [go|ts] DIR",
		Short: "Make a folder with a worker of one tool, a plan and a test",
		Long: `Init makes a folder with a worker of your own, in Go or in TypeScript: one tool, a plan that uses it,
its test, and a compose.yaml that starts all of it in containers. Its README says what to type.`,
		Example: `  stepjet init weather
  stepjet init ts weather`,
		Args: cobra.RangeArgs(1, 2),
		RunE: t.Work(func(_ *cobra.Command, args []string) error {
			language, folder := Go, args[len(args)-1]
			if len(args) == 2 {
				language = args[0]
			}
			if language != Go && language != TypeScript {
				return fault.New(fault.InvalidConfig, "there is no worker in %q", language).WithHint("write go or ts")
			}
			program, err := os.Executable()
			if err != nil {
				program = "stepjet"
			}
			if source == "" { // "make build" puts programs into the clone's bin
				itself, err := filepath.EvalSymlinks(program)
				if err != nil {
					itself = program
				}
				source = filepath.Dir(filepath.Dir(itself))
			}
			names, err := Make(Options{Folder: folder, Language: language, Source: source, Stepjet: program})
			if err != nil {
				return err
			}
			if t.JSON() {
				return t.Document(struct {
					Folder   string   `json:"folder"`
					Language string   `json:"language"`
					Files    []string `json:"files"`
				}{folder, language, names})
			}
			t.Say("%s has %s", folder, strings.Join(names, ", "))
			return t.Print(next(folder, language, program))
		}),
	}
	c.Flags().StringVar(&source, "stepjet", "", "`folder` of Stepjet's source; default: the one that this program was built in")
	return c
}

// next is what to type first.
func next(folder, language, program string) string {
	test, start := "go test .", "go run ."
	if language == TypeScript {
		test, start = "npm ci && npm test", "NATS_URL=nats://127.0.0.1:4222 npm start"
	}
	return fmt.Sprintf("cd %s\n%s\n%s dev    # in a second terminal\n%s    # in a third\n%s run plan.json\n", folder, test, program, start, program)
}
