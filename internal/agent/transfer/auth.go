package transfer

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// A connection begins with a mutual proof of the secret, in which neither end shows it:
//
//	receiver -> sender: nonceR
//	sender -> receiver: nonceS, HMAC(secret, "sender", nonceR, nonceS)
//	receiver -> sender: one byte, 1, and HMAC(secret, "receiver", nonceR, nonceS); or 0
//
// Both then share a key for the connection, which proves the digests of the files.

const (
	nonceSize = 32
	proofSize = sha256.Size
	// minSecret is the least number of bytes of a secret.
	minSecret = 16
)

// errWrongSecret is the failure of a proof; errNoProof that of a peer that did not even try.
var (
	errWrongSecret = errors.New("the other end does not know the secret of this transfer")
	errNoProof     = errors.New("the connection ended before a proof")
)

func decodeSecret(text string) ([]byte, error) {
	secret, err := hex.DecodeString(text)
	if err != nil || len(secret) < minSecret {
		// The text itself must not appear in a message.
		return nil, fmt.Errorf("the secret is not at least %d bytes in hex", minSecret)
	}
	return secret, nil
}

func proof(key []byte, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		mac.Write(part)
	}
	return mac.Sum(nil)
}

// proveReceiver is the receiver's half; it gives the connection's key. Accepted is called before the
// sender learns that it is.
func proveReceiver(conn io.ReadWriter, secret []byte, accepted func()) ([]byte, error) {
	own := make([]byte, nonceSize)
	if _, err := rand.Read(own); err != nil {
		return nil, err
	}
	if _, err := conn.Write(own); err != nil {
		return nil, errors.Join(errNoProof, err)
	}
	answer := make([]byte, nonceSize+proofSize)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return nil, errors.Join(errNoProof, err)
	}
	other := answer[:nonceSize]
	if !hmac.Equal(answer[nonceSize:], proof(secret, []byte("sender"), own, other)) {
		_, err := conn.Write([]byte{0})
		return nil, errors.Join(errWrongSecret, err)
	}
	accepted()
	if _, err := conn.Write(append([]byte{1}, proof(secret, []byte("receiver"), own, other)...)); err != nil {
		return nil, err
	}
	return proof(secret, []byte("key"), own, other), nil
}

// proveSender is the sender's half.
func proveSender(conn io.ReadWriter, secret []byte) ([]byte, error) {
	nonces := make([]byte, 2*nonceSize)
	other, own := nonces[:nonceSize], nonces[nonceSize:]
	if _, err := io.ReadFull(conn, other); err != nil {
		return nil, errors.Join(errNoProof, err)
	}
	if _, err := rand.Read(own); err != nil {
		return nil, err
	}
	if _, err := conn.Write(append(append([]byte{}, own...), proof(secret, []byte("sender"), other, own)...)); err != nil {
		return nil, errors.Join(errNoProof, err)
	}
	verdict := make([]byte, 1+proofSize)
	if _, err := io.ReadFull(conn, verdict[:1]); err != nil {
		return nil, errors.Join(errNoProof, err)
	}
	if verdict[0] != 1 {
		return nil, errWrongSecret
	}
	if _, err := io.ReadFull(conn, verdict[1:]); err != nil {
		return nil, errors.Join(errNoProof, err)
	}
	if !hmac.Equal(verdict[1:], proof(secret, []byte("receiver"), other, own)) {
		return nil, errWrongSecret
	}
	return proof(secret, []byte("key"), other, own), nil
}
