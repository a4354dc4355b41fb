package servers

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stepjet/stepjet/fault"
)

// Lock holds the definitions that somebody has agreed to, by server and tool. A tool whose server now says something
// else is not used until that is agreed to as well.
type Lock struct {
	path    string
	servers map[string]map[string]Pin
}

// Pin is one definition: its pinned fields, and their SHA-256.
type Pin struct {
	SHA256     string          `json:"sha256"`
	Definition json.RawMessage `json:"definition"`
}

// lockForm is the file. Its version changes with its form.
type lockForm struct {
	Version int                       `json:"version"`
	Servers map[string]map[string]Pin `json:"servers"`
}

const lockVersion = 1

// ReadLock reads a lock; a file that is not there is an empty one. Errors have code invalid_config.
func ReadLock(path string) (*Lock, error) {
	l := &Lock{path: path, servers: map[string]map[string]Pin{}}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.InvalidConfig, err, "reading the lock of MCP servers")
	}
	var form lockForm
	if err := json.Unmarshal(raw, &form); err != nil {
		return nil, l.broken("it is no lock: " + err.Error())
	}
	if form.Version != lockVersion {
		return nil, l.broken("it is of version " + itoa(form.Version) + ", and this program knows " + itoa(lockVersion))
	}
	for server, tools := range form.Servers {
		for name, p := range tools {
			form, err := (Remote{name, p.Definition}).Pinned()
			if err != nil || Digest(form) != p.SHA256 {
				return nil, l.broken("the definition of " + Name(server, name) + " is not the one that its SHA-256 is of")
			}
			l.Set(server, name, form)
		}
	}
	return l, nil
}

func (l *Lock) broken(why string) error {
	return fault.New(fault.InvalidConfig, "the lock %s can't be used: %s", l.path, why).
		WithHint("it is written by stepjet mcp pin and stepjet mcp accept, and not by hand; to begin anew, delete it")
}

// Set agrees to a definition, of pinned fields.
func (l *Lock) Set(server, tool string, pinned json.RawMessage) {
	if l.servers[server] == nil {
		l.servers[server] = map[string]Pin{}
	}
	l.servers[server][tool] = Pin{Digest(pinned), pinned}
}

// Get returns what was agreed to of a tool.
func (l *Lock) Get(server, tool string) (Pin, bool) {
	p, ok := l.servers[server][tool]
	return p, ok
}

// Remove forgets a tool.
func (l *Lock) Remove(server, tool string) { delete(l.servers[server], tool) }

// Write replaces the file, all of it or nothing.
func (l *Lock) Write() error {
	raw, err := json.Marshal(lockForm{lockVersion, l.servers})
	var indented bytes.Buffer
	if err == nil {
		err = json.Indent(&indented, raw, "", "  ")
	}
	if err == nil {
		err = replaceFile(l.path, append(indented.Bytes(), '\n'))
	}
	if err != nil {
		return fault.Wrap(fault.InvalidConfig, err, "writing the lock of MCP servers")
	}
	return nil
}

func replaceFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it is renamed
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close(), os.Chmod(f.Name(), 0o644), os.Rename(f.Name(), path))
}
