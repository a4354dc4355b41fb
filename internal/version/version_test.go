package version

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A version that was set wins over what the go command knows.
func TestVersion(t *testing.T) {
	require.NotEmpty(t, strings.TrimSpace(String()))
	set = "v1.2.3"
	defer func() { set = "" }()
	name, _ := Of()
	require.Equal(t, "v1.2.3", name)
	require.True(t, strings.HasPrefix(String(), "v1.2.3"))
}
