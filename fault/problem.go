package fault

// Problem is one thing wrong with a plan, written so that a model can repair it.
type Problem struct {
	// Code is one of the plan's codes.
	Code Code `json:"code"`
	// Path is a JSON pointer (RFC 6901) into the plan. It goes on into arguments that are JSON strings.
	Path string `json:"path"`
	// Message says what is wrong.
	Message string `json:"message"`
	// Hint says how to mend it; it may be empty.
	Hint string `json:"hint,omitempty"`
}
