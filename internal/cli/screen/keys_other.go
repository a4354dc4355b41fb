//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd

package screen

import "os"

// keys is a terminal that hands over each key: here, none does.
type keys struct{ typed chan typed }

type typed struct{ keys []byte }

// CanAsk reports whether people can be asked at a terminal: on this system they are told of a question in a line.
func CanAsk(*os.File) bool { return false }

// Restore puts the terminal back in order.
func Restore() {}

func listen(*os.File, func()) (*keys, error) { return nil, os.ErrInvalid }

func (*keys) forget() {}

func (*keys) close() {}

func (*keys) counts(typed) bool { return false }
