package main

import (
	"context"

	"github.com/stepjet/stepjet/model"
	"github.com/stepjet/stepjet/model/provider"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

type letterIn struct {
	Number int `json:"number"`
}

type letter struct {
	Text string `json:"text"`
}

func getLetter(context.Context, letterIn) (letter, error) {
	return letter{"The parcel came broken. I want my money back."}, nil
}

// asks makes what asks the models of a configuration.
func asks(config []byte) (*model.Config, *provider.Caller, error) {
	c, err := model.ParseConfig(config, "models.json")
	if err != nil {
		return nil, nil, err
	}
	caller, err := provider.New(c, nil)
	return c, caller, err
}

// host adds both tools to a worker.
func host(w *worker.Worker, defs []*tool.Definition, c *model.Config, caller *provider.Caller) error {
	worker.Handle(w, "get_letter", getLetter, worker.DefinedBy(defs...))
	return caller.Host(w, provider.Definition("model", "", c))
}
