package seal

import (
	"crypto/hpke"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/stepjet/stepjet/fault"
)

// Key is a private key.
type Key struct {
	Public  *Public
	Created time.Time

	private hpke.PrivateKey
}

// NewKey makes a key.
func NewKey(now time.Time) (Key, error) {
	private, err := kem().GenerateKey()
	if err != nil {
		return Key{}, fault.Wrap(fault.Internal, err, "making a key")
	}
	return keyOf(private, now), nil
}

func keyOf(private hpke.PrivateKey, created time.Time) Key {
	public := private.PublicKey()
	return Key{&Public{keyID(public.Bytes()), public}, created.UTC().Truncate(time.Second), private}
}

func (k Key) open(about string, raw []byte) ([]byte, error) {
	r, err := hpke.NewRecipient(raw[:encSize], k.private, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte(Info))
	if err != nil {
		return nil, err
	}
	return r.Open([]byte(about), raw[encSize:])
}

// Keyring holds private keys, the newest last. It may be used from many goroutines. One that was loaded from a file
// reads it again where a value is sealed to a key that it does not hold: so a key is handed out by replacing the file.
type Keyring struct {
	file string

	mu     sync.Mutex
	keys   []Key
	looked time.Time // when the file was last read
}

// NewKeyring makes a ring of keys, the newest last.
func NewKeyring(keys ...Key) *Keyring { return &Keyring{keys: slices.Clone(keys)} }

// Keys returns the keys, the newest last.
func (r *Keyring) Keys() []Key {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.keys)
}

// IDs names the keys, the newest last; none where the ring is nil.
func (r *Keyring) IDs() (ids []string) {
	for _, k := range r.Keys() {
		ids = append(ids, k.Public.ID())
	}
	return ids
}

// Newest returns the key to seal to; nil where the ring is nil or empty.
func (r *Keyring) Newest() *Public {
	keys := r.Keys()
	if len(keys) == 0 {
		return nil
	}
	return keys[len(keys)-1].Public
}

// Has reports whether the ring holds a key.
func (r *Keyring) Has(id string) bool {
	_, ok := r.key(id)
	return ok
}

// Open returns what is sealed in a value. The error has the code sealed, and says which key is missing.
func (r *Keyring) Open(about, value string) (string, error) {
	id := KeyOf(value)
	if id == "" {
		return "", fault.New(fault.Sealed, "a secret is said to be sealed, and is not of that form")
	}
	if r == nil {
		return "", fault.New(fault.Sealed, "a secret is sealed to the key %s, and this worker holds no keys", id).
			WithHint("start the workers of this tool with --secrets-key FILE, or worker.Config.SecretsKey")
	}
	key, ok := r.key(id)
	if !ok {
		return "", fault.New(fault.Sealed, "a secret is sealed to the key %s, which this worker's file does not hold", id).
			WithHint("give the workers the key file of the orchestrators; stepjet keys list FILE shows what one holds")
	}
	raw, _ := b64.DecodeString(value[len(id)+1:]) // KeyOf has done so
	text, err := key.open(about, raw)
	if err != nil { // the reason is never more than that
		return "", fault.New(fault.Sealed,
			"a secret that is sealed to the key %s can't be opened: it was sealed for another run, or was changed", id).
			WithHint("a secret is sealed for one tenant, run id and context key: submit the run with its secrets anew")
	}
	return string(text), nil
}

// reread is how often a ring looks into its file for a key that it does not hold.
const reread = time.Second

func (r *Keyring) key(id string) (Key, bool) {
	if r == nil {
		return Key{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if k, ok := find(r.keys, id); ok || r.file == "" || time.Since(r.looked) < reread {
		return k, ok
	}
	r.looked = time.Now()
	fresh, err := readFile(r.file)
	if err != nil { // the keys that were there go on
		return Key{}, false
	}
	r.keys = fresh
	return find(fresh, id)
}

func find(keys []Key, id string) (Key, bool) {
	i := slices.IndexFunc(keys, func(k Key) bool { return k.Public.id == id })
	if i < 0 {
		return Key{}, false
	}
	return keys[i], true
}

// The form of a key file.
type (
	fileForm struct {
		Version int       `json:"version"`
		Keys    []keyForm `json:"keys"` // the newest last
	}
	keyForm struct {
		ID      string    `json:"id"`
		Created time.Time `json:"created"`
		Public  string    `json:"public"`
		Private string    `json:"private"`
	}
)

// Load reads a key file. Errors have the code invalid_config: a file that is not there, that holds something else, or
// that others may read.
func Load(file string) (*Keyring, error) {
	keys, err := readFile(file)
	if err != nil {
		return nil, err
	}
	return &Keyring{file: file, keys: keys, looked: time.Now()}, nil
}

func readFile(file string) ([]Key, error) {
	info, err := os.Stat(file)
	if err == nil && info.Mode().Perm()&^0o640 != 0 && modes {
		return nil, fault.New(fault.InvalidConfig, "the key file %s may be read or written by others (mode %04o)", file,
			info.Mode().Perm()).
			WithHint("chmod 600 %s", file)
	}
	var raw []byte
	if err == nil {
		raw, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fault.Wrap(fault.InvalidConfig, err, "reading the key file").
			WithHint("stepjet keys new %s makes one", file)
	}
	keys, err := parse(raw)
	if err != nil { // no part of the file is shown
		return nil, fault.New(fault.InvalidConfig, "%s is no key file", file).
			WithHint("stepjet keys new %s.new makes one", file)
	}
	return keys, nil
}

var errForm = errors.New("no key file")

func parse(raw []byte) ([]Key, error) {
	var in fileForm
	if json.Unmarshal(raw, &in) != nil || in.Version != 1 || len(in.Keys) == 0 {
		return nil, errForm
	}
	var keys []Key
	for _, k := range in.Keys {
		raw, err := b64.DecodeString(k.Private)
		if err != nil {
			return nil, errForm
		}
		private, err := kem().NewPrivateKey(raw)
		if err != nil {
			return nil, errForm
		}
		key := keyOf(private, k.Created)
		if key.Public.id != k.ID {
			return nil, errForm
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// Create writes a key file that is not there yet, of mode 0600.
func Create(file string, keys []Key) error {
	body, err := form(keys)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fault.New(fault.InvalidConfig, "%s is there already", file).
			WithHint("stepjet keys rotate %s adds a key to it", file)
	}
	if err == nil {
		_, err = f.Write(body)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		return fault.Wrap(fault.InvalidConfig, err, "writing the key file")
	}
	return nil
}

// Replace writes a key file in place of one that is there, at once or not at all.
func Replace(file string, keys []Key) error {
	next := file + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by one that was interrupted
		return fault.Wrap(fault.InvalidConfig, err, "writing the key file")
	}
	if err := Create(next, keys); err != nil {
		return err
	}
	if err := os.Rename(next, file); err != nil {
		return fault.Wrap(fault.InvalidConfig, err, "writing the key file")
	}
	return nil
}

func form(keys []Key) ([]byte, error) {
	out := fileForm{Version: 1}
	for _, k := range keys {
		raw, err := k.private.Bytes()
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "writing a key")
		}
		out.Keys = append(out.Keys, keyForm{k.Public.id, k.Created, k.Public.String(), b64.EncodeToString(raw)})
	}
	b, err := json.MarshalIndent(out, "", "  ")
	return append(b, '\n'), err
}
