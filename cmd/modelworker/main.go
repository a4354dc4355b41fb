// Command modelworker hosts language models as tools.
package main

import (
	"os"

	"github.com/stepjet/stepjet/internal/daemon"
	"github.com/stepjet/stepjet/internal/serve/models"
)

func main() { os.Exit(daemon.Execute(models.Worker("modelworker"))) }
