// Package roots has a program verify servers by the authorities that browsers trust, where its system has no certificates:
// an image of a program holds nothing else, so it could ask no provider of models and no HTTPS server. Programs import it,
// packages that others build on never: it is the program's to say whom it trusts.
//
// A system that has certificates keeps its say (SSL_CERT_FILE and SSL_CERT_DIR are part of it), and so does whoever names an
// authority, as --tls-ca does. The list is Mozilla's, of the day that go.mod names; a new release brings a newer one.
package roots

import _ "golang.org/x/crypto/x509roots/fallback" // sets them with x509.SetFallbackRoots
