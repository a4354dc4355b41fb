package dev

import (
	"github.com/stepjet/stepjet/internal/hosted"
	"github.com/stepjet/stepjet/worker"
)

// host gives a worker the tools of a file, or the built-in ones.
func (s *Stack) host(w *worker.Worker) error {
	s.tools = hosted.Builtin()
	if s.options.Tools != "" {
		f, err := hosted.Load(s.options.Tools)
		if err != nil {
			return err
		}
		s.tools = f
		for _, warning := range f.Warnings() {
			s.options.Logger.Warn(warning, "file", s.options.Tools)
		}
	}
	return s.tools.Register(w)
}
