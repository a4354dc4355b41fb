// Command check reads the configuration of releases as GoReleaser does, with its own types, strictly: a field that is
// none is an error. It also checks what no type says: that what is built is there, that each archive, image and
// signature is of something that is built, that the images are those that the chart asks for, and that the version is set
// where the program looks for it.
//
//	go run . REPOSITORY IMAGE...
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
)

func main() {
	if err := check(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// variable is where a program finds the version of a release.
const variable = "github.com/stepjet/stepjet/internal/version.set="

func check(top string, images []string) error {
	p, err := config.Load(filepath.Join(top, ".goreleaser.yaml"))
	if err != nil {
		return err
	}
	var all []error
	wrong := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	there := func(path, of string) {
		if found, err := filepath.Glob(filepath.Join(top, strings.ReplaceAll(path, "/**/", "/*/"))); err != nil || len(found) == 0 {
			wrong("%s: %s is not there", of, path)
		}
	}
	built := map[string]bool{}
	for _, b := range p.Builds {
		built[b.ID] = true
		there(b.Main, b.ID)
		if !strings.Contains(strings.Join(b.Ldflags, " "), "-X "+variable) {
			wrong("%s: no version is set", b.ID)
		}
		if !slices.Contains(b.Env, "CGO_ENABLED=0") || !slices.Equal(b.Goarch, []string{"amd64", "arm64"}) {
			wrong("%s: it is not static, or not for both architectures", b.ID)
		}
	}
	version, err := os.ReadFile(filepath.Join(top, "internal/version/version.go"))
	if err != nil || !strings.Contains(string(version), "\nvar set string\n") {
		wrong("internal/version has no such variable: %v", err)
	}
	of := func(what string, ids []string) {
		if len(ids) == 0 {
			wrong("%s is of everything", what)
		}
		for _, id := range ids {
			if !built[id] {
				wrong("%s is of %s, which nobody builds", what, id)
			}
		}
	}
	for _, a := range p.Archives {
		of("archive "+a.ID, a.IDs)
		for _, f := range a.Files {
			there(f.Source, "archive "+a.ID)
		}
	}
	var imaged []string
	for _, d := range p.DockersV2 {
		of("image "+d.ID, d.IDs)
		there(d.Dockerfile, "image "+d.ID)
		imaged = append(imaged, d.Images...)
		if len(d.IDs) != 1 || d.IDs[0] != d.BuildArgs["PROGRAM"] || !slices.Equal(d.Platforms, []string{"linux/amd64", "linux/arm64"}) {
			wrong("image %s: its program, or its platforms", d.ID)
		}
	}
	slices.Sort(imaged)
	slices.Sort(images)
	if !slices.Equal(imaged, images) || len(images) != len(built) {
		wrong("images are %q, but %q should be, one of each program", imaged, images)
	}
	if len(p.SBOMs) == 0 || len(p.Signs) == 0 || len(p.DockerSigns) == 0 {
		wrong("something is not signed, or has no bill of materials")
	}
	if len(all) == 0 {
		fmt.Printf("%d programs, %d archives, %d images\n", len(p.Builds), len(p.Archives), len(p.DockersV2))
	}
	return errors.Join(all...)
}
