// Package typescript is the worker in TypeScript, for who makes folders with one ("stepjet init ts").
package typescript

import "embed"

// Files are what a worker is made of beside its tool, and what npm installs for it.
//
//go:embed worker.ts stream.ts spans.ts package-lock.json
var Files embed.FS
