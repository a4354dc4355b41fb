package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/stepjettest"
)

func TestThePlan(t *testing.T) {
	plan, err := os.ReadFile("plan.json")
	require.NoError(t, err)
	s := stepjettest.New(t) // a NATS server, an orchestrator and a connection, all in this process
	stepjettest.Register(s, "get_weather", weather)
	out := s.Run(string(plan))
	require.Equal(t, outcome.Succeeded, out.Status)
	said, _ := out.Results.Get("said")
	require.JSONEq(t, `"Tokyo is 8.5 degrees warmer than London"`, string(said))
}

func TestAnUnknownCity(t *testing.T) {
	s := stepjettest.New(t)
	stepjettest.Register(s, "get_weather", weather)
	out := s.Run(`{"steps": [{"id": "a", "tool": "get_weather", "arguments": {"name": "Atlantis"}}]}`)
	require.Equal(t, outcome.Failed, out.Status)
	require.Equal(t, "there is no station in Atlantis", out.Errors[0].Message)
}
