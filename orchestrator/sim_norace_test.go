//go:build !race

package orchestrator

// usualSeeds is how many worlds a test run simulates.
const usualSeeds = 10_000
