package bench

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
)

// asRole makes the test binary play a role.
const asRole = "role"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == asRole {
		r, err := ParseRole(os.Args[2])
		if err != nil || r.Run(context.Background(), slog.New(slog.DiscardHandler), Extra{}) != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func testEnv(t *testing.T) Env {
	self, err := os.Executable()
	require.NoError(t, err)
	return Env{Command: []string{self, asRole}, Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
}

// Every shape is measured in either layout, and no process is left.
func TestMeasure(t *testing.T) {
	t.Parallel()
	for _, l := range []Layout{Embedded, Separate} {
		t.Run(l.Part, func(t *testing.T) {
			t.Parallel()
			var begun []string
			got, err := Measure(t.Context(), testEnv(t), l, 100*time.Millisecond, func(s string) { begun = append(begun, s) })
			require.NoError(t, err)
			require.Equal(t, l.Part, got.Layout)
			require.Len(t, got.Shapes, 3)
			for i, m := range got.Shapes {
				require.Equal(t, begun[i], m.Shape)
				require.Positive(t, m.RunMS, m.Shape)
				require.Positive(t, m.StepMS, m.Shape)
				require.Positive(t, m.Rate, m.Shape)
			}
			require.NotEmpty(t, got.PeakMB)
		})
	}
}

func TestLayoutsAreChosenByName(t *testing.T) {
	t.Parallel()
	all, err := Layouts(nil)
	require.NoError(t, err)
	require.Equal(t, []Layout{Embedded, Separate}, all)
	one, err := Layouts([]string{"separate"})
	require.NoError(t, err)
	require.Equal(t, []Layout{Separate}, one)
	_, err = Layouts([]string{"cluster"})
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
}

func TestMeasuringEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Measure(ctx, testEnv(t), Embedded, time.Minute, func(string) {})
	require.Error(t, err)
}

// A process that had more to do while it rested than in its round has used no CPU for the round, and not less than none.
func TestCPUIsNeverBelowNothing(t *testing.T) {
	t.Parallel()
	require.Zero(t, perThousand(10*time.Millisecond, 40*time.Millisecond, 500))
	require.InDelta(t, 0.06, perThousand(40*time.Millisecond, 10*time.Millisecond, 500), 1e-9)
}
