package example

import (
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// Tools are the definitions of a file, by name.
type Tools map[string]*tool.Definition

// MustTools reads definitions that are compiled into the program; it panics where they are not valid.
func MustTools(raw []byte) Tools {
	list, err := tool.ParseDefinitions(raw)
	if err != nil {
		panic(err)
	}
	all := Tools{}
	for _, d := range list {
		all[d.Name] = d
	}
	return all
}

// Of gives the options that host a function under the definition of that name, whose schemas and contract replace those
// that would be inferred. It panics where there is none.
func (t Tools) Of(name string) []worker.Option {
	d, ok := t[name]
	if !ok {
		panic("tools.json defines no tool " + name)
	}
	options := []worker.Option{worker.Title(d.Title), worker.Description(d.Description), worker.Tenants(d.Tenants...)}
	if d.InputSchema != nil {
		options = append(options, worker.InputSchema(d.InputSchema))
	}
	if d.OutputSchema != nil {
		options = append(options, worker.OutputSchema(d.OutputSchema))
	}
	if d.Annotations != nil {
		options = append(options, worker.Annotations(*d.Annotations))
	}
	if d.Orchestration != nil {
		options = append(options, worker.Contract(*d.Orchestration))
	}
	return options
}
