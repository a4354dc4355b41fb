package cast_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/cast"
)

// drawn returns what stands in each text of a picture, which has to be well-formed and without scripts.
func drawn(t *testing.T, svg string) (texts []string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	within := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}
		require.NoError(t, err)
		switch x := token.(type) {
		case xml.StartElement:
			require.Contains(t, []string{"svg", "style", "rect", "text"}, x.Name.Local)
			within = x.Name.Local == "text"
		case xml.CharData:
			if within {
				texts = append(texts, string(x))
			}
		case xml.EndElement:
			within = false
		}
	}
}

// Each row is drawn once for as long as it stands there, and the last frame stays for those who want no motion.
func TestFramesBecomeAPicture(t *testing.T) {
	t.Parallel()
	svg := cast.SVG([]cast.Frame{
		{0, []string{"$ x"}},
		{time.Second, []string{"$ x", `<img src="y"> & 1`}},
		{2 * time.Second, []string{"$ x", "two"}},
		{3 * time.Second, []string{"$ x", "two", "", "three"}},
	}, 20, 3)
	// Of four rows the last three are seen: then "two" stands in another row.
	require.Equal(t, []string{"$ x", `<img src="y"> & 1`, "two", "two", "three"}, drawn(t, svg))
	require.Equal(t, 3, strings.Count(svg, "past"+`"`), "what is gone at the end")
	require.Contains(t, svg, "prefers-reduced-motion")
}

// A command's own words are on the tape, as they came.
func TestARecordingIsWhatWasWritten(t *testing.T) {
	t.Parallel()
	frames, err := cast.Record(t.Context(), 40, 10, []string{"PATH=" + os.Getenv("PATH")}, []string{`test -t 1 && echo a terminal`, `echo two`})
	require.NoError(t, err)
	last := frames[len(frames)-1]
	require.Equal(t, []string{`$ test -t 1 && echo a terminal`, "a terminal", `$ echo two`, "two"}, last.Rows)
	for i := range frames[1:] {
		require.Greater(t, frames[i+1].At, frames[i].At)
	}
}

// The README's picture is small, and one that anybody may embed.
func TestTheReadmesTerminalIsSmall(t *testing.T) {
	t.Parallel()
	svg, err := os.ReadFile("../../../docs/terminal.svg")
	require.NoError(t, err)
	require.Less(t, len(svg), 48<<10)
	texts := drawn(t, string(svg))
	require.Contains(t, strings.Join(texts, "\n"), "$ stepjet run --run trip examples/plans/weather.json")
	readme, err := os.ReadFile("../../../README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), "](docs/terminal.svg)")
}
