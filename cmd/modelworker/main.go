// Command modelworker hosts language models as tools.
package main

import (
	"os"

	"github.com/stepjet/stepjet/internal/daemon"
	_ "github.com/stepjet/stepjet/internal/roots" // an image has no certificates
	"github.com/stepjet/stepjet/internal/serve/models"
)

func main() { os.Exit(daemon.Execute(models.Worker("modelworker"))) }
