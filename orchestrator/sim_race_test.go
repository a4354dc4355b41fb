//go:build race

package orchestrator

// usualSeeds is how many worlds a test run simulates. There is nothing to race in them: this is to know that it is so.
const usualSeeds = 300
