// Agents runs one of the agents beside it: its planner plays a script, or is a language model where one is named.
package main

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"os/signal"
	"strings"

	"github.com/nats-io/nats.go"
)

//go:embed */*.json
var folders embed.FS

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	model := flag.String("model", "",
		"ask a `model` instead of the script: ollama:qwen3:4b, openai:gpt-5-mini, anthropic:claude-sonnet-4-5")
	script := flag.String("script", "", "the `name` behind answers- of another script of the folder")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "agents [flags] FOLDER\n\nFolders: %s\n\n", strings.Join(names(), ", "))
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2) //nolint:gocritic // what is left open ends with the program
	}
	url := cmp.Or(os.Getenv("NATS_URL"), nats.DefaultURL)
	if err := run(ctx, url, flag.Arg(0), *script, *model, os.Stdout); err != nil {
		log.Fatal(err) //nolint:gocritic // what is left open ends with the program
	}
}

// names are those of the folders.
func names() (all []string) {
	entries, _ := folders.ReadDir(".") // they are a part of the program
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// example is a folder of an agent.
type example struct {
	folder  string
	agents  []byte // its definitions; the last one is run, where there is no plan
	plan    []byte // what is run instead: it defines an agent itself; nil for none
	groups  []byte // groups of tools; nil for none
	input   []byte
	answers []byte // of the scripted planner
	person  []byte // what a person answers who is asked; nil for nobody
}

// read reads a folder, with the script of a name.
func read(folder, script string) (e example, err error) {
	e.folder = folder
	suffix := ".json"
	if script != "" {
		suffix = "-" + script + ".json"
	}
	of := func(file string, needed bool) (raw []byte) {
		raw, failed := folders.ReadFile(folder + "/" + file)
		if needed || !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
		return raw
	}
	e.plan, e.answers = of("plan.json", false), of("answers"+suffix, true)
	if e.agents = []byte("[]"); e.plan == nil {
		e.agents = of("agent.json", true)
	}
	if e.input = of("input"+suffix, false); e.input == nil {
		e.input = of("input.json", e.plan == nil)
	}
	e.groups, e.person = of("groups.json", false), of("person.json", false)
	if err != nil {
		return e, fmt.Errorf("%w; there are %s", err, strings.Join(names(), ", "))
	}
	return e, nil
}

// run hosts the tools of an example, runs its agent, and prints its rounds and the outcome.
func run(ctx context.Context, url, folder, script, model string, out io.Writer) error {
	e, err := read(folder, script)
	if err != nil {
		return err
	}
	nc, err := nats.Connect(url)
	if err != nil {
		return err
	}
	defer nc.Close()
	s := &stage{example: e}
	end, err := s.open(ctx, nc, model)
	if err != nil {
		return err
	}
	o, err := s.play(ctx, "")
	if err == nil {
		_, err = fmt.Fprintf(out, "%s\n%s\n", s.transcript(), o.JSON())
	}
	return errors.Join(err, end())
}
