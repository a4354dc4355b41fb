package roots_test

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	_ "github.com/stepjet/stepjet/internal/roots"
)

const without = "STEPJET_TEST_WITHOUT_CERTIFICATES"

// TestPublicAuthoritiesAreTrustedWhereTheSystemHasNone: in a process that finds no certificates on its system, as in an
// image, a public authority verifies, and a stranger does not.
func TestPublicAuthoritiesAreTrustedWhereTheSystemHasNone(t *testing.T) {
	t.Parallel()
	if os.Getenv(without) == "" { // the system's are read when a program starts: ask another one
		nowhere := filepath.Join(t.TempDir(), "nowhere")
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
		again.Env = append(os.Environ(), without+"=1", "SSL_CERT_FILE="+nowhere, "SSL_CERT_DIR="+nowhere)
		said, err := again.CombinedOutput()
		require.NoError(t, err, string(said))
		return
	}
	raw, err := os.ReadFile("testdata/public.pem") // ISRG Root X1, Let's Encrypt's, good until 2035
	require.NoError(t, err)
	block, _ := pem.Decode(raw)
	require.NotNil(t, block)
	public, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	when := x509.VerifyOptions{CurrentTime: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)}
	chains, err := public.Verify(when)
	require.NoError(t, err)
	require.NotEmpty(t, chains)
	public.Raw = append([]byte{0}, public.Raw...) // as good as any other that nobody has signed
	_, err = public.Verify(when)
	require.Error(t, err)
}
