package screen

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/vt"
	"github.com/stepjet/stepjet/internal/text"
)

// seen is what a person should see: the dumb twin of a screen.
type seen struct {
	width  int
	lines  []string // for good
	frame  []string
	prompt string
}

func (s *seen) rows() []string {
	var rows []string
	for _, l := range s.lines {
		t := vt.New(s.width)
		_, _ = t.Write([]byte(l)) // it never fails
		rows = append(rows, t.Rows()...)
	}
	for _, l := range s.frame {
		fits, _ := text.Fit(l, s.width-1)
		rows = append(rows, fits)
	}
	return append(rows, s.prompt)
}

// Whatever is drawn, written, typed and resized in whatever order: what was written stands there, once and whole, and
// below it what is drawn last.
func TestWhatIsSeen(t *testing.T) {
	t.Parallel()
	words := []string{"step", "東京都", "a rather long line that reaches beyond the last column of most", "✓", "", "⚡ fast", "é"}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		line := func() string {
			var parts []string
			for range rng.IntN(4) {
				parts = append(parts, words[rng.IntN(len(words))])
			}
			return strings.Join(parts, " ")
		}
		is := &seen{width: 80}
		on := vt.New(80)
		s := New(on, true, func() (int, int) { return is.width, 24 })
		var did []string
		for range 60 {
			switch what := rng.IntN(6); {
			case what == 0:
				l := line()
				_, _ = s.Write([]byte(l + "\n")) // it never fails
				is.lines = append(is.lines, l)
				did = append(did, "write "+l)
			case what <= 2:
				is.frame = nil
				for range rng.IntN(6) {
					is.frame = append(is.frame, line())
				}
				s.Draw(is.frame)
				did = append(did, fmt.Sprintf("draw %q", is.frame))
			case what == 3 && !s.Asks():
				s.Ask("ok? ")
				is.prompt = "ok? "
				did = append(did, "ask")
			case what == 3:
				s.Withdraw("gone")
				is.lines, is.prompt = append(is.lines, "gone"), ""
				did = append(did, "withdraw")
			case what == 4 && s.Asks() && len(is.prompt) < 12:
				s.Type([]byte("x"))
				is.prompt += "x"
				did = append(did, "type")
			default:
				is.width = []int{80, 40, 20, 133}[rng.IntN(4)]
				on.Resize(is.width)
				s.Again()
				did = append(did, fmt.Sprint("resize ", is.width))
			}
			require.Equal(t, is.rows(), on.Rows(), "seed %d: %s", seed, strings.Join(did, "\n"))
		}
		require.Empty(t, on.Odd())
	}
}

// A prompt and what is typed behind it never break: of a long text the end is seen.
func TestALongAnswer(t *testing.T) {
	t.Parallel()
	on := vt.New(40)
	s := New(on, true, func() (int, int) { return 40, 24 })
	s.Draw([]string{"above"})
	s.Ask("answer; Enter leaves it open: ")
	for range 30 {
		s.Type([]byte("京"))
	}
	s.Type([]byte("end"))
	require.Len(t, on.Rows(), 2)
	require.Contains(t, on.String(), "京end")
	typed, entered := s.Type([]byte("\n"))
	require.True(t, entered)
	require.Equal(t, strings.Repeat("京", 30)+"end", typed)
	require.Contains(t, strings.ReplaceAll(on.String(), "\n", ""), "open: "+typed, "it stands there as a whole")
}

// Of more lines than a terminal has, the first stays, and the last.
func TestALowTerminal(t *testing.T) {
	t.Parallel()
	on := vt.New(40)
	s := New(on, true, func() (int, int) { return 40, 5 })
	s.Draw([]string{"head", "1", "2", "3", "4"})
	require.Equal(t, []string{"head", "3", "4", ""}, on.Rows())
}

// A terminal that can't be redrawn gets lines, and no code.
func TestLines(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	s := New(&b, false, func() (int, int) { return 80, 24 })
	s.Draw([]string{"drawn"})
	s.Ask("ok? ")
	s.Type([]byte("yo京\x7f\x7fe"))
	_, _ = s.Write([]byte("meanwhile\n")) // it never fails
	_, entered := s.Type([]byte("s\n"))
	require.True(t, entered)
	require.Equal(t, "ok? ye\nmeanwhile\nok? yes\n", b.String())
	b.Reset()
	s.Ask("ok? ")
	s.Type([]byte("y東"))
	s.Type([]byte("\x7f"))
	s.Withdraw("gone")
	require.Equal(t, "ok? y東\b \b\b \b\ngone\n", b.String())
}

// What strangers wrote doesn't steer a terminal that draws it.
func TestWhatIsDrawnIsHarmless(t *testing.T) {
	t.Parallel()
	on := vt.New(80)
	s := New(on, true, func() (int, int) { return 80, 24 })
	s.Draw([]string{"\x1b[32mgreen\x1b[0m \x1b[2Jevil\a \u009b31m\x1b]0;title\a\x1b[31mred"})
	require.Empty(t, on.Odd())
	require.Contains(t, on.String(), "evil")
}
