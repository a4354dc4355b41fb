package worker

// Keys opens secrets that were sealed when their run was submitted. A *seal.Keyring does, and so may a program that has
// its keys elsewhere. It is safe for concurrent use.
type Keys interface {
	// IDs names the keys that it opens with now, as sealed values name them.
	IDs() []string
	// Open returns what is sealed in a value; about names the tenant, the run and the key of the context that it was
	// sealed for. The step fails with the error, which holds no secret.
	Open(about, value string) (string, error)
}
