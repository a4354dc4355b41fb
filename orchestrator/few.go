package orchestrator

// few is a map that takes no room while there is nothing in it: most of what an owner may have to keep of a run, it has of
// none, or for a moment. What is not there is read as from any map.
type few[K comparable, V any] map[K]V

// put puts a value in.
func (f *few[K, V]) put(key K, value V) {
	if *f == nil {
		*f = few[K, V]{}
	}
	(*f)[key] = value
}

// drop takes a value out. A map that has had something in it keeps room for eight.
func (f *few[K, V]) drop(key K) {
	if delete(*f, key); len(*f) == 0 {
		*f = nil
	}
}
