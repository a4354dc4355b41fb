package tool

import "strings"

// MaxName is the longest tool name, in bytes (plan language: "Tool names").
const MaxName = 128

// ValidName reports whether s is a tool name: 1 to 128 of [A-Za-z0-9_.:/-].
func ValidName(s string) bool {
	if s == "" || len(s) > MaxName {
		return false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '.', c == ':', c == '/', c == '-':
		default:
			return false
		}
	}
	return true
}

// validTenant reports whether s is a tenant: [A-Za-z0-9_-]{1,64}.
func validTenant(s string) bool {
	return len(s) <= 64 && ValidName(s) && !strings.ContainsAny(s, ".:/")
}

// nearLetters is the length from which a name has near misses by one edit; a shorter one would have too many.
const nearLetters = 4

// NearMiss gives the known field name that name was probably meant to be: equal to it after lower-casing and removing
// "_" and "-", or, for known names of four letters and more, one edit (a letter inserted, left out or exchanged) away.
// It gives "" where name is itself known, or near none (plan language, "A plan").
func NearMiss(name string, known ...string) string {
	for _, k := range known {
		if name == k {
			return ""
		}
	}
	if len(name) > maxFieldName {
		return ""
	}
	plain := normalise(name)
	for _, k := range known {
		if plain == normalise(k) {
			return k
		}
	}
	for _, k := range known {
		if len(k) >= nearLetters && (oneEdit(name, k) || oneEdit(plain, normalise(k))) {
			return k
		}
	}
	return ""
}

// maxFieldName is longer than any known field name with room for "_" and "-"; a longer name is near nothing.
const maxFieldName = 64

func normalise(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' {
			return -1
		}
		return r
	}, strings.ToLower(s))
}

// oneEdit reports whether a becomes b by inserting, leaving out or exchanging exactly one byte.
func oneEdit(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 || a == b {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) == len(b) {
		return a[i+1:] == b[i+1:]
	}
	return a[i:] == b[i+1:]
}
