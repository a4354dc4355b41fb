package text_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/text"
)

func TestNearMiss(t *testing.T) {
	t.Parallel()
	known := []string{"id", "tool", "depends_on", "output_steps"}
	for name, want := range map[string]string{
		"id": "", "tool": "", "ID": "id", "i_d": "id", "ids": "", "Tool": "tool", "tools": "tool",
		"tol": "tool", "took": "tool",
		"toolx1": "", "dependsOn": "depends_on", "depend_on": "depends_on", "DependOn": "depends_on",
		"output_step": "output_steps",
		"outputSteps": "output_steps", "thought": "", "": "", "description": "",
	} {
		require.Equal(t, want, text.NearMiss(name, known...), name)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"", "search_flights", "search_hotels", "getWeather", "send"}
	for name, want := range map[string][]string{
		"searchFlights": {"search_flights"}, "get_weather": {"getWeather"}, "sned": {"send"},
		"search":     {"search_flights", "search_hotels"},
		"send_email": {"send"}, "weather_report": {"getWeather"}, "send": nil, "": nil,
		"xyz": nil, strings.Repeat("send", 33): nil,
	} {
		require.Equal(t, want, text.Nearest(name, names), name)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	require.Equal(t, "abc", text.Cut("abc", 3))
	require.Equal(t, "ab…", text.Cut("abc", 2))
	require.Equal(t, "a…", text.Cut("aé", 2), "no half of a character")
	require.Equal(t, "…", text.Cut("é", 1))
	require.Equal(t, "a\xff…", text.Cut("a\xffb", 2), "bytes that are no text stay")
	require.Equal(t, "a\uFFFD…", text.Clip("a\xffb", 2))
	require.Equal(t, "\uFFFDb", text.Clip("\xff\xfeb", 9))
	require.True(t, utf8.ValidString(text.Clip("\x80\x80\x80\x80", 2)))
}

func TestCount(t *testing.T) {
	t.Parallel()
	require.Equal(t, "0 steps", text.Count(0, "step"))
	require.Equal(t, "1 step", text.Count(1, "step"))
	require.Equal(t, "1200 steps", text.Count(1200, "step"))
}

func TestATailIsTheEnd(t *testing.T) {
	var tail text.Tail
	for range 100 {
		n, err := tail.Write([]byte(strings.Repeat("x", 100)))
		require.NoError(t, err)
		require.Equal(t, 100, n)
	}
	_, _ = tail.Write([]byte("the end \xff\n"))
	require.Len(t, tail.String(), 2<<10+1, "less a line break, and three bytes for one that is no text")
	require.True(t, strings.HasSuffix(tail.String(), "the end \uFFFD"))
}
