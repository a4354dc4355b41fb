// Package programs builds the project's own programs for tests that run them as processes.
//
// The go command caches a test's verdict and looks only at what the test process itself has read. Programs that a test
// builds in a subprocess are unknown to it, so a broken program would pass as "ok (cached)". Build therefore looks at
// each source file that the programs are made of: the cached verdict then ends with the first change of any of them.
package programs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build builds packages, named relative to the module's root ("./cmd/stepjet"), into a folder.
func Build(dir string, packages ...string) error {
	root, err := output("go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	if err := look(root, packages); err != nil {
		return err
	}
	build := exec.Command("go", append([]string{"build", "-o", dir + string(filepath.Separator)}, packages...)...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", strings.Join(packages, " "), err, out)
	}
	return nil
}

// Look looks at the source files of packages that the test has built by other means.
func Look(packages ...string) error {
	root, err := output("go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	return look(root, packages)
}

// sources lists, for the go command's templates, the folders of this module that a package is made of, and the files
// that it embeds.
const sources = `{{if not .Standard}}{{with .Module}}{{if .Main}}{{$.Dir}}{{range $.EmbedFiles}}
{{$.Dir}}/{{.}}{{end}}{{end}}{{end}}{{end}}`

// look opens whatever the packages are built of, which is what the go command's cache notes of a test.
func look(root string, packages []string) error {
	list := exec.Command("go", append([]string{"list", "-deps", "-f", sources}, packages...)...)
	list.Dir = root
	raw, err := list.Output()
	if err != nil {
		return fmt.Errorf("listing the sources: %w", err)
	}
	for _, path := range append(strings.Fields(string(raw)), filepath.Join(root, "go.mod"),
		filepath.Join(root, "go.sum")) {
		info, err := os.Stat(path)
		if err == nil && info.IsDir() {
			_, err = os.ReadDir(path) // of a folder, the names, sizes and times of its files count
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func output(name string, args ...string) (string, error) {
	raw, err := exec.Command(name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return string(bytes.TrimSpace(raw)), nil
}
