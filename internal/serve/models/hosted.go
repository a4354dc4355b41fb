package models

import (
	"log/slog"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/model"
	"github.com/stepjet/stepjet/worker"
)

// Hosted are language models that a program hosts beside what else it does.
type Hosted struct {
	file  *file
	rates *shared
}

// Open reads a models file; or without one takes the model that a word names (model.Named), once under the name of each
// of the tools. Keys are read now, by getenv. Errors have code invalid_config, and show no key.
func Open(path, word string, tools []string, env func(string) (string, bool)) (*Hosted, error) {
	if path != "" {
		f, err := load(path, env)
		if err != nil {
			return nil, err
		}
		return &Hosted{file: f}, nil
	}
	f := &file{}
	for _, name := range tools {
		c, err := model.Named(word, env)
		if err != nil {
			return nil, err
		}
		f.tools = append(f.tools, hosted{name: name, config: c})
	}
	if err := f.keys(env); err != nil {
		return nil, err
	}
	return &Hosted{file: f}, nil
}

// Tools returns the names of the tools that they are.
func (h *Hosted) Tools() (names []string) {
	for _, t := range h.file.tools {
		names = append(names, t.name)
	}
	return names
}

// Host adds them to a worker that was not started yet, on its connection. It is called once.
func (h *Hosted) Host(nc *nats.Conn, w *worker.Worker, log *slog.Logger) (err error) {
	h.rates, err = h.file.host(nc, w, log)
	return err
}

// Close closes what they have open, once the worker is over.
func (h *Hosted) Close() {
	h.rates.close()
	h.file.close()
}
