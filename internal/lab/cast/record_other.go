//go:build !linux

package cast

import (
	"context"
	"errors"
)

// Record needs a pseudo terminal of Linux.
func Record(context.Context, int, int, []string, []string) ([]Frame, error) {
	return nil, errors.New("terminals are recorded on Linux alone")
}
