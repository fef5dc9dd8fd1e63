package transfer

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// An encrypted connection is TLS 1.3 between two keys that both ends make of the one-time secret: whoever shows
// the other key knows the secret, and nothing else of a certificate counts. The proof of auth.go follows inside.
const (
	senderRole   = "tls sender"
	receiverRole = "tls receiver"
)

// roleKey is the key of one end of the transfer with this secret.
func roleKey(secret []byte, role string) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(proof(secret, []byte(role)))
}

// configuration is TLS for one end, which accepts the other role's key alone.
func configuration(secret []byte, own, other string) (*tls.Config, error) {
	key := roleKey(secret, own)
	wanted, isKey := roleKey(secret, other).Public().(ed25519.PublicKey)
	if !isKey {
		return nil, errors.New("an ed25519 key has no ed25519 public key")
	}
	// TLS wants a certificate; its names and dates mean nothing here, and clocks may differ.
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}
	certificate, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the transfer: %w", err)
	}
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true, //nolint:gosec // The key is compared below, which is stricter than a chain of authorities.
		SessionTicketsDisabled: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) > 0 && wanted.Equal(state.PeerCertificates[0].PublicKey) {
				return nil
			}
			return errWrongSecret
		},
	}, nil
}

// encrypted wraps the sender's end of a connection.
func encryptedSender(conn net.Conn, secret []byte) (net.Conn, error) {
	config, err := configuration(secret, senderRole, receiverRole)
	if err != nil {
		return nil, err
	}
	return tls.Client(conn, config), nil
}

// encryptedReceiver wraps the receiver's end.
func encryptedReceiver(conn net.Conn, secret []byte) (net.Conn, error) {
	config, err := configuration(secret, receiverRole, senderRole)
	if err != nil {
		return nil, err
	}
	return tls.Server(conn, config), nil
}

// handshake ends the handshake of an encrypted connection; of another one there is none. What fails for another
// reason than the other end's key is no proof of anything.
func handshake(conn net.Conn) error {
	secured, is := conn.(*tls.Conn)
	if !is {
		return nil
	}
	err := secured.Handshake() //nolint:noctx // The link closes the connection with its context.
	if err == nil || errors.Is(err, errWrongSecret) {
		return err
	}
	return errors.Join(errNoProof, err)
}
