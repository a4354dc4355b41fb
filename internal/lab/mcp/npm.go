package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/mcp/bridge"
	"github.com/stepjet/stepjet/outcome"
)

// bridged is a plan over the tools of a server, and what it comes to. FOLDER stands for a folder of the run's own.
type bridged struct {
	Server string          `json:"server"`
	Plan   json.RawMessage `json:"plan"`
	Output json.RawMessage `json:"output"`
}

// Bridge hosts the tools of real servers from npm, whose packages are installed in a folder, as workers of a Stepjet, runs
// the folder's plans over them, and writes how each went. An error says which didn't come to what it should.
func Bridge(ctx context.Context, folder string, out io.Writer) error {
	data, err := os.MkdirTemp("", "stepjet-npm-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(data) }()
	if data, err = filepath.EvalSymlinks(data); err != nil { // servers compare paths with what they are allowed
		return err
	}
	plans, err := readBridged(filepath.Join(folder, "plans.json"), data)
	if err != nil {
		return err
	}
	began := time.Now()
	b, err := bridge.Open(ctx, bridge.Options{
		File: filepath.Join(folder, "servers.json"), Lock: filepath.Join(data, "mcp.lock"), TrustFirstUse: true,
		Lookup: func(name string) (string, bool) { return data, name == "FOLDER" },
	})
	if err != nil {
		return err
	}
	defer b.Close()
	return whole(ctx, "bridge", b.Register, func(c *client.Client) error {
		_, _ = fmt.Fprintf(out, "\n%d tools of servers from npm, hosted after %.1f s\n", len(b.Definitions()), time.Since(began).Seconds())
		for _, x := range plans {
			if err := x.run(ctx, c, out); err != nil {
				return fmt.Errorf("%s: %w", x.Server, err)
			}
		}
		return nil
	})
}

func readBridged(path, folder string) (all []bridged, err error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(bytes.ReplaceAll(body, []byte("FOLDER"), []byte(folder)), &all)
}

// run runs a plan and compares.
func (x *bridged) run(ctx context.Context, c *client.Client, out io.Writer) error {
	began := time.Now()
	end, err := c.Run(ctx, x.Plan, client.SubmitOptions{})
	if err != nil {
		return err
	}
	took := time.Since(began)
	var got, want any
	if err := json.Unmarshal(x.Output, &want); err != nil {
		return err
	}
	if end.Status != outcome.Succeeded || json.Unmarshal(end.Output, &got) != nil || !reflect.DeepEqual(got, want) {
		return fmt.Errorf("not what it should be, %s: %s", x.Output, end.JSON())
	}
	_, err = fmt.Fprintf(out, "  %-11s %s in %d ms\n", x.Server, strings.ToLower(string(end.Status)), took.Milliseconds())
	return err
}
