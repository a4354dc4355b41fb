// Command toolworker hosts tools: the built-in ones, or those of a file; "stepjet worker" does the same.
package main

import (
	"os"

	"github.com/stepjet/stepjet/internal/daemon"
	_ "github.com/stepjet/stepjet/internal/roots" // an image has no certificates
	"github.com/stepjet/stepjet/internal/serve"
)

func main() { os.Exit(daemon.Execute(serve.Worker("toolworker"))) }
