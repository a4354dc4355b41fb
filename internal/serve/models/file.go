package models

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/model"
	"github.com/stepjet/stepjet/model/provider"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/worker"
)

// maxFile is the largest models file, in bytes.
const maxFile = 1 << 20

// file is a models file: {"tools": [{"name", "description"?, "model": {…}}]}.
type file struct {
	tools []hosted
}

type hosted struct {
	name, description string
	config            *model.Config
	caller            *provider.Caller
}

// getenv reads an environment variable.
type getenv func(string) (string, bool)

// load reads a models file and the keys that it names. Errors have code invalid_config.
func load(path string, env getenv) (*file, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidConfig, err, "reading the models file")
	}
	defer in.Close()
	raw, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, fault.Wrap(fault.InvalidConfig, err, "reading the models file")
	}
	if len(raw) > maxFile {
		return nil, fault.New(fault.InvalidConfig, "%s is over %d bytes", path, maxFile)
	}
	f, err := parse(raw, env)
	if err != nil {
		why := fault.As(err)
		return nil, fault.New(fault.InvalidConfig, "the models file %s is not valid:\n%s", path, why.Message).
			WithHint("%s", cmp.Or(why.Hint, "docs/models.md describes it"))
	}
	return f, nil
}

func parse(raw []byte, env getenv) (*file, error) {
	var in struct {
		Tools []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Model       json.RawMessage `json:"model"`
		} `json:"tools"`
	}
	raw = text.Unmarked(raw)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, fault.New(fault.InvalidConfig, "%v", err)
	}
	var problems []string
	f, names := &file{}, map[string]bool{}
	for i, t := range in.Tools {
		at := fmt.Sprintf("/tools/%d", i)
		if !subjects.ValidTool(t.Name) || names[t.Name] {
			problems = append(problems, fmt.Sprintf("%s/name: %q is no name of a tool, or there twice", at, t.Name))
		}
		names[t.Name] = true
		c, err := model.ParseConfig(t.Model, at+"/model")
		if err != nil {
			problems = append(problems, fault.As(err).Message)
			continue
		}
		f.tools = append(f.tools, hosted{name: t.Name, description: t.Description, config: c})
	}
	if len(in.Tools) == 0 {
		problems = append(problems, "/tools: there is none")
	}
	if len(problems) > 0 {
		return nil, fault.New(fault.InvalidConfig, "%s", strings.Join(problems, "\n"))
	}
	return f, f.keys(env)
}

// keys makes the callers, which read their keys.
func (f *file) keys(env getenv) (err error) {
	for i := range f.tools {
		t := &f.tools[i]
		if t.caller, err = provider.New(t.config, env); err != nil {
			why := fault.As(err)
			return fault.New(why.Code, "the tool %q: %s", t.name, why.Message).WithHint("%s", why.Hint)
		}
	}
	return nil
}

// limited reports whether there is a model with a rate to keep to.
func (f *file) limited() bool {
	for _, t := range f.tools {
		for _, m := range t.config.Models {
			if m.RPM > 0 || m.TPM > 0 {
				return true
			}
		}
	}
	return false
}

// register hosts the file's models on a worker, which shares their rates with others; nil for none.
func (f *file) register(w *worker.Worker, rates provider.Rates, log *slog.Logger) error {
	for _, t := range f.tools {
		if rates != nil {
			t.caller.Share(t.name, rates, log)
		}
		if err := t.caller.Host(w, provider.Definition(t.name, t.description, t.config)); err != nil {
			return err
		}
	}
	return nil
}

func (f *file) close() {
	for _, t := range f.tools {
		t.caller.Close()
	}
}

// host hosts the file's models on a worker with this connection, and returns what they share; nil where no model has a
// rate.
func (f *file) host(nc *nats.Conn, w *worker.Worker, log *slog.Logger) (*shared, error) {
	if !f.limited() {
		return nil, f.register(w, nil, log)
	}
	rates := &shared{nc: nc}
	return rates, f.register(w, rates, log)
}
