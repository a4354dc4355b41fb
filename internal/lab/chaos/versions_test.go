package chaos

import (
	"go/parser"
	"go/token"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheNewerVersionFits keeps what makes the newer version up to date with the code.
func TestTheNewerVersionFits(t *testing.T) {
	t.Parallel()
	files, err := overlaid("../../..")
	require.NoError(t, err)
	for name, text := range files {
		_, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		require.NoError(t, err, name)
	}
}
