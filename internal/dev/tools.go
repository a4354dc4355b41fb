package dev

import (
	"github.com/stepjet/stepjet/worker"
)

func host(w *worker.Worker, file string) error {
	return nil
}
