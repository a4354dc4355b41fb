// Package jsontape is the project's one reader of JSON. It knows what RFC 8259 allows and, beside that, what plans and
// outputs are refused for: bytes that are no text, half surrogate pairs, keys used twice, and nesting too deep.
//
//   - Cursor reads one token after the other; package tool builds on it what schemas are held against.
//   - Scanner checks a whole text in one pass and records a tape where it is asked to: a Node for each value and key.
//   - SkipValue, Member, Item and NextItem find a way through text that was checked already, without a tape.
//   - Text, AppendUnescaped, AppendEscaped and AppendQuoted go from JSON strings to text and back.
//   - AppendToken and AppendIndex write JSON pointers (RFC 6901).
//
// It allocates for a tape and for keys with escapes, and for nothing else. It has no opinion on what is said to people:
// callers word their own errors.
package jsontape
