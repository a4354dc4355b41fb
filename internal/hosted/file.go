package hosted

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/builtin"
	"github.com/stepjet/stepjet/internal/jsonfile"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// MaxFile is the largest tools file, in bytes.
const MaxFile = 16 << 20

// Problems are all that is wrong with a tools file, in the order of their places.
type Problems = jsonfile.Problems

// File is a tools file, read and checked.
type File struct {
	tools    []hosted
	warnings []string
	web      *web // connections of the HTTP tools; nil where there are none
}

// hosted is one tool and how to call it.
type hosted struct {
	def  *tool.Definition
	call caller
	uses []string // keys of the run's context that it asks for
}

// caller executes one kind of tool. Its arguments have been checked against the input schema.
type caller func(ctx context.Context, args json.RawMessage, info worker.Info) (worker.Output, error)

// Load reads a tools file. The error has code invalid_config and names the file and everything that is wrong with it;
// its cause is Problems, unless the file can't be read at all.
func Load(path string) (*File, error) {
	raw, err := read(path)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidConfig, err, "reading the tools file")
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fault.Wrap(fault.InvalidConfig, err, "reading the tools file")
	}
	f, err := Parse(raw, dir)
	var problems Problems
	if errors.As(err, &problems) {
		return nil, &fault.Error{Code: fault.InvalidConfig,
			Message: "the tools file " + path + " is not valid:\n" + problems.Error(), Cause: problems}
	}
	return f, err
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err == nil && len(raw) > MaxFile {
		err = fault.New(fault.InvalidConfig, "%s is over %d bytes", path, MaxFile)
	}
	return raw, err
}

// Parse reads the content of a tools file. Relative directories of programs start at dir. The error is Problems.
func Parse(raw []byte, dir string) (*File, error) {
	r := reader{dir: dir, getenv: os.LookupEnv, file: &File{}, names: map[string]string{}}
	r.read(raw)
	if len(r.problems) > 0 {
		r.file.Close()
		return nil, r.problems
	}
	return r.file, nil
}

// Builtin returns all built-in tools, as the file {"tools":[{"builtin":"all"}]} would.
func Builtin() *File {
	f := &File{}
	for _, t := range builtin.All() {
		f.tools = append(f.tools, builtinTool(t, *t.Definition))
	}
	return f
}

// Definitions returns what the file's tools are registered as, in its order.
func (f *File) Definitions() []*tool.Definition {
	all := make([]*tool.Definition, len(f.tools))
	for i, t := range f.tools {
		all[i] = t.def
	}
	return all
}

// Warnings says what is allowed in the file but will probably not work, such as a program that is not installed.
func (f *File) Warnings() []string { return f.warnings }

// Register hosts the file's tools on a worker, which has not been started yet. Errors are those of worker.HandleRaw.
func (f *File) Register(w *worker.Worker) error {
	for _, t := range f.tools {
		handler := func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
			return t.call(ctx, args, stepOf(ctx))
		}
		if err := w.HandleRaw(t.def, handler, together(t.uses)); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the idle connections of HTTP tools. Calls under way are not touched.
func (f *File) Close() {
	if f.web != nil {
		f.web.close()
	}
}

func builtinTool(t builtin.Tool, def tool.Definition) hosted {
	return hosted{def: &def, call: func(ctx context.Context, args json.RawMessage, info worker.Info) (worker.Output,
		error) {
		out, err := t.Run(ctx, builtin.Call{Args: args, Attempt: info.Attempt})
		return worker.Output{Body: out}, err
	}}
}
