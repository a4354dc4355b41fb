package version

import (
	"runtime/debug"
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
	require.Equal(t, "v1.2.3 2c7cfea1a46a", line("v1.2.3", "2c7cfea1a46a"))
	require.Equal(t, "v0.0.0-20261126043127-2c7cfea1a46a+dirty", line("v0.0.0-20261126043127-2c7cfea1a46a+dirty", "2c7cfea1a46a"))
	require.Equal(t, "(devel)", line("", ""))
	require.Equal(t, "(devel) 2c7cfea1a46a", line("", "2c7cfea1a46a"))
}

// A worker that is somebody's own program says which Stepjet it has, not which version it is itself.
func TestTheVersionWithinAnotherProgram(t *testing.T) {
	t.Parallel()
	program := debug.Module{Path: "example.com/tools", Version: "v9.0.0"}
	for want, dep := range map[string]*debug.Module{
		"v0.3.0":  {Path: module, Version: "v0.3.0"},
		"v0.3.1":  {Path: module, Version: "v0.3.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v0.3.1"}},
		"(devel)": {Path: module, Version: "v0.3.0", Replace: &debug.Module{Path: "../stepjet"}},
	} {
		require.Equal(t, want, stepjet(&debug.BuildInfo{Main: program, Deps: []*debug.Module{{Path: "example.com/x"}, dep}}))
	}
	require.NotEmpty(t, Stepjet())
	require.Equal(t, "v1.2.3", compared("v1.2.3", "2c7cfea1a46a"), "as one says that was built with the module of that version")
	require.Equal(t, "(devel) 2c7cfea1a46a", compared("(devel)", "2c7cfea1a46a"))
	require.Equal(t, "(devel)", compared("", ""))
}
