package subjects_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/subjects"
)

func TestMadeAt(t *testing.T) {
	t.Parallel()
	at, ok := subjects.MadeAt("017f22e2-79b0-7cc3-98c4-dc0c0c07398f") // the example of RFC 9562, appendix A.6
	require.True(t, ok)
	assert.True(t, at.Equal(time.Date(2022, 2, 22, 19, 22, 22, 0, time.UTC)), at)

	before := time.Now().Truncate(time.Millisecond)
	fresh, err := uuid.NewV7()
	require.NoError(t, err)
	at, ok = subjects.MadeAt(fresh.String())
	require.True(t, ok)
	assert.WithinRange(t, at, before, time.Now())

	for _, other := range []string{
		"", "nightly-7", "017f22e2-79b0-4cc3-98c4-dc0c0c07398f", // version 4
		"017F22E2-79B0-7CC3-98C4-DC0C0C07398F", "017f22e279b07cc398c4dc0c0c07398f",
		"017f22e2-79b0-7cc3-98c4-dc0c0c07398", "017f22e2-79b0-7cc3-98c4-dc0c0c07398g", "-17f22e2-79b0-7cc3-98c4-dc0c0c07398f",
		"017f22e2-79b-07cc3-98c4-dc0c0c07398f", "017f-2e2-79b0-7cc3-98c4-dc0c0c07398f",
	} {
		_, ok := subjects.MadeAt(other)
		assert.False(t, ok, other)
	}
}
