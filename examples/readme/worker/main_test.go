package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/stepjettest"
)

func TestWeather(t *testing.T) {
	s := stepjettest.New(t) // a NATS server, an orchestrator and a connection, all in this process
	stepjettest.Register(s, "get_weather", weather)
	out := s.Run(`{"steps": [{"id": "a", "tool": "get_weather", "arguments": {"name": "Atlantis"}}]}`)
	require.Equal(t, outcome.Failed, out.Status)
	require.Equal(t, "there is no station in Atlantis", out.Errors[0].Message)
}
