// Package version says which Stepjet a program is.
package version

import (
	"runtime/debug"
	"strings"
	"sync"
)

// set is the version of a release: -ldflags "-X github.com/stepjet/stepjet/internal/version.set=v1.2.3".
var set string

// Of returns the version, as it was set or as the go command stamped it ("" where neither knows it), and the first
// twelve digits of the commit, "" where the build knows none.
func Of() (version, commit string) {
	version = set
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, ""
	}
	if version == "" {
		version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			commit = s.Value[:min(12, len(s.Value))]
		}
	}
	return version, commit
}

// String returns both in one line, the commit once: the version that the go command makes of one ends with it.
func String() string { return line(Of()) }

func line(version, commit string) string {
	switch {
	case version == "":
		version = "(devel)"
	case strings.Contains(version, commit): // also where there is none
		return version
	}
	return strings.TrimSuffix(version+" "+commit, " ")
}

// module is Stepjet's own.
const module = "github.com/stepjet/stepjet"

// Stepjet returns the version of a program of Stepjet's, and of one that was built with Stepjet the version of that:
// "(devel)" where it was built from a folder. What workers and orchestrators say of themselves, to be compared: of one
// release all say the same, so the commit is named only where there is no version, or as a part of it.
var Stepjet = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return compared(Of())
	}
	return stepjet(info)
})

func stepjet(info *debug.BuildInfo) string {
	for _, d := range info.Deps {
		if d.Path != module {
			continue
		}
		if d.Replace != nil {
			d = d.Replace
		}
		if d.Version == "" {
			return "(devel)"
		}
		return d.Version
	}
	return compared(Of())
}

func compared(version, commit string) string {
	if strings.HasPrefix(version, "v") {
		return version
	}
	return line(version, commit)
}
