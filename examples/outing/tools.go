package main

import (
	"context"
	"fmt"

	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// Weather is what get_weather returns.
type Weather struct {
	Sky     string  `json:"sky"`
	Celsius float64 `json:"celsius"`
}

// City is what is asked for.
type City struct {
	City string `json:"city"`
}

func getWeather(_ context.Context, in City) (Weather, error) {
	if in.City == "Bergen" {
		return Weather{"rain", 9}, nil
	}
	return Weather{"clear", 21}, nil
}

// Sun is what is_it_sunny returns: one of both is there.
type Sun struct {
	Sunny    string `json:"sunny,omitempty"`
	NotSunny string `json:"notSunny,omitempty"`
}

func isItSunny(_ context.Context, in struct {
	Weather Weather `json:"weather"`
}) (Sun, error) {
	why := fmt.Sprintf("%s, %g degrees", in.Weather.Sky, in.Weather.Celsius)
	if in.Weather.Sky == "clear" && in.Weather.Celsius > 15 {
		return Sun{Sunny: why}, nil
	}
	return Sun{NotSunny: why}, nil
}

// Suggestion is what find_park and find_movie return.
type Suggestion struct {
	Place string `json:"place"`
}

// Wish is what is looked for.
type Wish struct {
	City    string `json:"city"`
	Because string `json:"because"`
}

func findPark(_ context.Context, in Wish) (Suggestion, error) {
	return Suggestion{"the park of " + in.City + " (" + in.Because + ")"}, nil
}

func findMovie(_ context.Context, in Wish) (Suggestion, error) {
	return Suggestion{"a cinema in " + in.City + " (" + in.Because + ")"}, nil
}

func present(_ context.Context, in struct {
	Suggestion Suggestion `json:"suggestion"`
}) (string, error) {
	return "How about " + in.Suggestion.Place + "?", nil
}

// host adds the tools to a worker, under their definitions.
func host(w *worker.Worker, defs []*tool.Definition) {
	worker.Handle(w, "get_weather", getWeather, worker.DefinedBy(defs...))
	worker.Handle(w, "is_it_sunny", isItSunny, worker.DefinedBy(defs...))
	worker.Handle(w, "find_park", findPark, worker.DefinedBy(defs...))
	worker.Handle(w, "find_movie", findMovie, worker.DefinedBy(defs...))
	worker.Handle(w, "present_suggestion", present, worker.DefinedBy(defs...))
}
