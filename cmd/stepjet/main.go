// Command stepjet runs tool plans on NATS JetStream; "stepjet help" says how.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/stepjet/stepjet/internal/cli"
	_ "github.com/stepjet/stepjet/internal/roots" // an image has no certificates
	"github.com/stepjet/stepjet/internal/serve/models"
)

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	again := make(chan struct{})
	go func() {
		<-signals
		cancel(cli.Interrupted())
		<-signals // a second one does not wait for an orderly end, unless the command has asked for it
		select {
		case again <- struct{}{}:
			<-signals
		default:
		}
		os.Exit(cli.AtOnce())
	}()
	os.Exit(cli.Main(ctx, cli.Env{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Again: again,
		Models: host,
	}))
}

// host opens language models, with the SDKs of their providers, which no other program of those that serve has in it.
func host(file, word string, tools []string, getenv func(string) (string, bool)) (cli.Models, error) {
	m, err := models.Open(file, word, tools, getenv)
	if err != nil {
		return nil, err
	}
	return m, nil
}
