package text

import "bytes"

// Unmarked returns what a file holds without the byte order mark that editors of Windows write before it, and nobody sees.
func Unmarked(file []byte) []byte { return bytes.TrimPrefix(file, []byte("\ufeff")) }
