package main

import (
	"context"
	"fmt"
	"time"

	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// Weather is what a station reports.
type Weather struct {
	City string  `json:"city"`
	Temp float64 `json:"temp_c"`
	Sky  string  `json:"sky"`
}

// stations answer after their latency, but for one that never does.
type stations struct {
	silent  string
	latency time.Duration
}

var reports = map[string]Weather{
	"Berlin": {"Berlin", 14, "cloudy"}, "Cairo": {"Cairo", 33.5, "clear"}, "Lagos": {"Lagos", 30, "thunderstorm"},
	"Lima": {"Lima", 18, "fog"}, "London": {"London", 13, "rain"}, "Mumbai": {"Mumbai", 31, "haze"},
	"Oslo": {"Oslo", 4.5, "snow"}, "Reykjavik": {"Reykjavik", 2, "wind"}, "Sydney": {"Sydney", 21, "clear"},
	"Tokyo": {"Tokyo", 22, "clear"},
}

func (s stations) get(ctx context.Context, in struct {
	City string `json:"city"`
}) (Weather, error) {
	answer := time.After(s.latency)
	if in.City == s.silent {
		answer = nil
	}
	select {
	case <-answer:
	case <-ctx.Done(): // after the contract's timeout_ms
		return Weather{}, context.Cause(ctx)
	}
	w, ok := reports[in.City]
	if !ok {
		return Weather{}, worker.Terminal(fmt.Errorf("there is no station in %s", in.City))
	}
	return w, nil
}

// Reading is an entry of what a for_each step came to: the data of an item, or none where it failed.
type Reading struct {
	Data *Weather `json:"data"`
}

// Comparison is what compare_weather returns.
type Comparison struct {
	Warmest  string `json:"warmest,omitempty"`
	Coldest  string `json:"coldest,omitempty"`
	Answered int    `json:"answered"`
	Silent   int    `json:"silent"`
}

func compare(_ context.Context, in struct {
	Readings []Reading `json:"readings"`
}) (c Comparison, err error) {
	var warmest, coldest *Weather
	for _, r := range in.Readings {
		if r.Data == nil {
			c.Silent++
			continue
		}
		c.Answered++
		if warmest == nil || r.Data.Temp > warmest.Temp {
			warmest, c.Warmest = r.Data, r.Data.City
		}
		if coldest == nil || r.Data.Temp < coldest.Temp {
			coldest, c.Coldest = r.Data, r.Data.City
		}
	}
	return c, nil
}

// host adds the tools to a worker, under their definitions.
func (s stations) host(w *worker.Worker, defs []*tool.Definition) {
	worker.Handle(w, "get_weather", s.get, worker.DefinedBy(defs...))
	worker.Handle(w, "compare_weather", compare, worker.DefinedBy(defs...))
}
