//go:build unix

package seal

// modes: a file's mode says who may read it.
const modes = true
